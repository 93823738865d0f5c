/** The bots, people and chats of a simulated installation. Their rows in Postgres never change. */

import { directChat, sharedChat } from '../../src/store/core/keys.js';
import { createSecrets, type Secrets } from '../../src/store/core/secrets.js';
import { sealedFor } from '../../src/store/webhooks/webhooks.js';

export const partitions = 2;
export const bots = [100_001, 100_002] as const;
export const users = [5_001, 5_002] as const;
export const group = sharedChat(-100_700);
export const directs = bots.flatMap((bot) => users.map((user) => directChat(bot, user)));

const everybody = [...bots, ...users] as readonly number[];
const isBot = (id: number) => (bots as readonly number[]).includes(id);

export const makeSecrets = (): Secrets =>
  createSecrets(['ab'.repeat(24)], [{ id: 'k1', key: Buffer.alloc(32, 7) }]);

const botRow = (id: number) => ({
  ...{ id, owner_id: users[0], username: `bot_${id}`, name: `Bot ${id}`, token: 'x', names: {}, version: 1 },
  ...{ suspended: false, deleted: false, inline_placeholder: null, inline_feedback: false },
});

const userRow = (id: number) => ({
  ...{ id, external_id: '', username: `user_${id}`, first_name: `User ${id}`, last_name: null, tokens: [] },
  ...{ language_code: null, version: 1, suspended: false, add_to_groups: 'everyone' },
});

const memberRow = (id: number) => ({
  ...{ member_id: id, is_bot: isBot(id), status: 'member', rights: {}, version: 1 },
  ...{ until_date: null, custom_title: null, promoted_by: null },
});

/** Answers the queries about these rows. */
export function controlRows(secrets: Secrets) {
  const webhookRow = (bot: number) => ({
    url_box: secrets.seal(`https://receiver.example/${bot}`, sealedFor(bot, 'url')),
    ...{ secret_box: null, certificate: null, max_connections: 10, ip_address: null },
    signing_box: secrets.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, sealedFor(bot, 'signing')),
    ...{ former_signing_box: null, former_until: null, version: 1, set_version: 1, suspended: false },
    copy_version: 1,
  });
  const rows = <T>(known: boolean, make: () => T): T[] => (known ? [make()] : []);
  const first = ([id]: readonly unknown[]) => Number(id);
  return [
    [/from direct_chats where/, () => [{ incarnation: 1, blocked: false, version: 1 }]],
    [
      /from chats c where c\.id/,
      (values: readonly unknown[]) =>
        rows(first(values) === group.id, () => ({
          ...{ id: group.id, type: 'group', title: 'Group', username: null, private: true, permissions: '' },
          ...{ member_count: everybody.length, incarnation: 1, version: 1, bots: [...bots] },
        })),
    ],
    [
      /from chat_members where chat_id = \$1 and member_id/,
      ([, id]: readonly unknown[]) => rows(everybody.includes(Number(id)), () => memberRow(Number(id))),
    ],
    [/as may\s+from bots b/, () => [{ policy: 'all', version: 1, may: true }]],
    [/from users u where u\.id/, (values: readonly unknown[]) => [userRow(first(values))]],
    [/w\.version as hook/, () => [{ hook: 1, set: 1, gone: false }]],
    [/from webhooks where bot_id/, (values: readonly unknown[]) => [webhookRow(first(values))]],
    [/from bots where id/, (values: readonly unknown[]) => [botRow(first(values))]],
  ] as const;
}

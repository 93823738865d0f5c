/** The control tables of the simulated Postgres: bots with tokens, webhooks, the outbox, and rows that never change. */
import type { BotRow } from '../../src/postgres/bots/bots.js';
import type { WebhookRow } from '../../src/postgres/webhooks/webhooks.js';
import { makeToken } from '../../src/rules/token.js';
import type { Secrets } from '../../src/store/core/secrets.js';
import { sealedFor } from '../../src/store/webhooks/webhooks.js';
import { bots, channel, group, users } from './people.js';

const everybody = [...bots, ...users] as readonly number[];
const isBot = (id: number) => (bots as readonly number[]).includes(id);

/** A copy in Redis that is outdated because the control record has changed. */
interface Stale {
  readonly id: number;
  readonly subject: string;
  readonly subject_id: number;
  readonly other_id: number;
  readonly createdMs: number;
}

/** The rows that change. A row object is replaced and never modified, so a copy of the maps is a copy of the state. */
export class ControlTables {
  readonly bots: Map<number, BotRow>;
  readonly webhooks: Map<number, WebhookRow>;
  readonly outbox: Map<number, Stale>;

  constructor(from: Partial<ControlTables> = {}) {
    this.bots = new Map(from.bots);
    this.webhooks = new Map(from.webhooks);
    this.outbox = new Map(from.outbox);
  }

  copy(): ControlTables {
    return new ControlTables(this);
  }
}

export type ControlAnswers = ReadonlyArray<
  readonly [pattern: RegExp, answer: (values: readonly unknown[], tables: ControlTables) => object[]]
>;

export const urlOf = (bot: number, version: number) => `https://receiver.example/${bot}/${version}`;

export const firstToken = (bot: number) => makeToken('bot', bot, Buffer.alloc(32, bot % 256));

const userRow = (id: number) => ({
  ...{ id, external_id: '', username: `user_${id}`, first_name: `User ${id}`, last_name: null, tokens: [] },
  ...{
    language_code: null,
    version: 1,
    suspended: false,
    add_to_groups: 'everyone',
    start_chats: 'everyone',
  },
});

const memberRow = (id: number) => ({
  ...{
    member_id: id,
    is_bot: isBot(id),
    status: id === users[0] ? 'creator' : 'member',
    rights: {},
    version: 1,
  },
  ...{ until_date: null, custom_title: null, promoted_by: null },
});

const groupRow = {
  ...{ id: group.id, type: 'group', title: 'Group', username: null, private: true, permissions: '' },
  ...{ member_count: everybody.length, incarnation: 1, version: 1, bots: [...bots] },
};

export function firstControlTables(secrets: Secrets): ControlTables {
  const tables = new ControlTables();
  for (const id of bots) {
    const token = secrets.lookup(firstToken(id)).toString('base64');
    tables.bots.set(id, {
      ...{ id, owner_id: users[0], username: `bot_${id}`, name: `Bot ${id}`, token, names: {}, version: 1 },
      ...{ suspended: false, deleted: false, inline_placeholder: null, inline_feedback: false },
    });
    tables.webhooks.set(id, {
      url_box: secrets.seal(urlOf(id, 0), sealedFor(id, 'url')),
      ...{ secret_box: null, certificate: null, max_connections: 10, ip_address: null, retry: null },
      routes_box: null,
      signing_box: secrets.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, sealedFor(id, 'signing')),
      ...{ former_signing_box: null, former_until: null, version: 1, set_version: 1, suspended: false },
      copy_version: 1,
    });
  }
  return tables;
}

const channelRow = {
  ...groupRow,
  id: channel.id,
  type: 'channel',
  title: 'Channel',
  private: false,
  bots: [],
};
const sharedRows = [groupRow, channelRow];

/** The queue settings of a bot. The bot exists, is not suspended, and has no routes. */
const plain = { gone: false, suspended: false, routes_box: null, version: 1 };

const some = <T>(row: T | undefined | false): T[] => (row ? [row] : []);

/** The statements that read rows that never change. */
const constant: ControlAnswers = [
  [
    /from direct_chats d where/,
    ([, user]) => [{ incarnation: 1, blocked: false, version: 1, person: userRow(Number(user)) }],
  ],
  [/from chats c .*where c\.id/s, ([id]) => some(sharedRows.find((row) => row.id === Number(id)))],
  [
    /from chat_members where chat_id = \$1 and member_id/,
    ([, id]) => some(everybody.includes(Number(id)) && memberRow(Number(id))),
  ],
  [/as may\s+from bots b/, () => [{ policy: 'all', version: 1, may: true }]],
  [/from users u where u\.id/, ([id]) => [userRow(Number(id))]],
  [/insert into bot_audit/, () => [{ id: 1 }]],
  [/from webhook_replays/, () => []],
];

/** Returns the statements that control changes use. `nowMs` is the clock of Postgres. */
export function controlAnswers(nowMs: () => number): ControlAnswers {
  let last = 1;
  const changing: ControlAnswers = [
    [
      /^\s*update bots set token_hmac/,
      ([lookup, , id], { bots }) => {
        const token = (lookup as Buffer).toString('base64');
        const row = { ...(bots.get(Number(id)) as BotRow), token, version: ++last };
        bots.set(row.id, row);
        return [row];
      },
    ],
    [
      /^\s*insert into webhooks as w/,
      ([bot, url_box, secret_box, certificate, max_connections, ip_address, retry, , sets], { webhooks }) => {
        const was = webhooks.get(Number(bot)) as WebhookRow;
        const version = ++last;
        const set_version = sets ? version : was.set_version;
        const next = {
          url_box,
          secret_box,
          certificate,
          max_connections,
          ip_address,
          retry,
        } as Partial<WebhookRow>;
        webhooks.set(Number(bot), { ...was, ...next, version, set_version, copy_version: version });
        return [{ version, set_version }];
      },
    ],
    [
      /^\s*insert into control_outbox/,
      ([subjects, ids, others], { outbox }) => {
        for (const [i, subject] of (subjects as string[]).entries()) {
          const id = ++last;
          const [subject_id, other_id] = [(ids as number[])[i], (others as number[])[i]] as [number, number];
          outbox.set(id, { id, subject, subject_id, other_id, createdMs: nowMs() });
        }
        return [];
      },
    ],
    [
      /from control_outbox\s+where created_at/,
      ([ageMs], { outbox }) =>
        [...outbox.values()].filter(({ createdMs }) => createdMs < nowMs() - Number(ageMs)),
    ],
    [
      /^\s*delete from control_outbox/,
      ([ids], { outbox }) => {
        for (const id of ids as number[]) outbox.delete(id);
        return [];
      },
    ],
    [
      /as hook,/,
      ([bot], { webhooks }) => {
        const row = webhooks.get(Number(bot));
        const set = row?.url_box ? row : undefined;
        return [{ hook: set?.version ?? null, set: set?.set_version ?? null, ...plain }];
      },
    ],
    [/from webhooks where bot_id/, ([bot], { webhooks }) => some(webhooks.get(Number(bot)))],
    [
      /select owner_id as owner, username from bots/,
      ([id], { bots }) => some(bots.get(Number(id))).map((row) => ({ ...row, owner: row.owner_id })),
    ],
    [/from bots where id/, ([id], { bots }) => some(bots.get(Number(id)))],
  ];
  return [...constant, ...changing];
}

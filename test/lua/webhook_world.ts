import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { base, bot, direct, keys, partitionOf, type Seed, seeds } from './world.js';

export const home = partitionOf(direct);
export const chat = chatText(direct);
export const other = `${bot}.9`;
export const fence = `${base}`;
export const at = {
  ...{ meta: keys.meta(home), journal: keys.journal(home), state: keys.queueState(bot) },
  ...{ queue: keys.queue(bot), parked: keys.parked(bot), retries: keys.retries(bot) },
  ...{ attempts: keys.attempts(bot), due: keys.webhooksDue(home), channel: keys.botChannel(bot) },
  consumption: keys.consumption(bot),
};
export const state = `queue_state:${bot}`;
export const stream = `queue:${bot}`;
export const parked = `parked:${bot}`;
export const retries = `retries:${bot}`;
export const attempts = `attempts:${bot}`;
export const due = 'webhooks_due';

export type More = Partial<Case> & Pick<Case, 'answer'>;
export const hooked = (fields: Record<string, string | number> = {}): Seed =>
  seeds.queue({ hook: 7, since: 7, hook_version: 7, cur: 0, fence: base, bytes: 300, ...fields });
export const member = (id: number, of = chat) => `${of}:${`${id}`.padStart(16, '0')}`;
export const zset =
  (key: string, ...members: Array<string | number>): Seed =>
  (client) =>
    client.zadd(key, ...members);
export const three = [seeds.open(home), seeds.entry(39), seeds.entry(40), seeds.entry(41, { c: other })];
export const ids = (rows: unknown) => (rows as [Buffer][]).map(([id]) => String(id)).join();
export const rowsOf = (wanted: string) => expect.toSatisfy((rows) => ids(rows) === wanted);
export const again = (...wanted: Array<[chat: string, tries: string, ids: string]>) =>
  expect.toSatisfy(
    (chats) =>
      JSON.stringify(
        (chats as [Buffer, Buffer, unknown][]).map(([name, tries, rows]) => [
          `${name}`,
          `${tries}`,
          ids(rows),
        ]),
      ) === JSON.stringify(wanted),
  );
export const any = expect.anything();
export const later = Date.now() + 600_000;
/** The version of a webhook that was set in the previous incarnation. */
export const formerFence = `${base - 1}`;
export const mine = (fields = {}) => hooked({ fence, leased: later, ...fields });
export const field = (client: Redis, name: string) => client.hget(keys.queueState(bot), name);
export const waits = zset(keys.webhooksDue(home), 1, bot);

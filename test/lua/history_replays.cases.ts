/** Test cases for replays of stored updates into a webhook (decision 0081). */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { queueId } from '../../src/store/core/queue_ids.js';
import type { Case } from './cases.js';
import { at, chat, home, type More, rowsOf, zset } from './webhook_world.js';
import { base, bot, incarnation, keys, type Seed, seeds } from './world.js';

const queue = queueId(bot, limits.replay_slot);
const [state, stream, due] = [`queue_state:${queue}`, `queue:${queue}`, 'webhooks_due'];
const opened = [seeds.open(home), seeds.queue({ hook: 7, cur: 0 })];
const replaying = (fields: Record<string, string | number> = {}): Seed =>
  seeds.hash(keys.queueState(queue), {
    ...{ seq: 41, inc: incarnation, bytes: 0, mask: 0, replay: 5, to: 0, at: 16, fed: 2, hook: 7, ...fields },
  });
const pending: Seed = (client) =>
  client.xadd(
    keys.queue(queue),
    '40-0',
    ...['k', 'message', 't', '1', 'c', chat, 'm', '1', 'r', 'r', 'f', 'f'],
  );
const stateOf = (client: Redis, ...names: string[]) => client.hmget(keys.queueState(queue), ...names);
const stale = { seeds: opened, answer: ['stale_run'] };

const open = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/open_replay', what, keys: at },
  args: { bot: `${bot}`, replay: '5', slot: '2', from: '16', ...args },
  ...more,
});
const opens: Case[] = [
  open('opens the queue of a replay', {
    ...{ seeds: opened, answer: ['ok'], changes: [state] },
    async after(client) {
      expect(await stateOf(client, 'replay', 'to', 'at', 'fed', 'seq')).toEqual(['5', '2', '16', '0', '41']);
      expect(await client.pttl(keys.queueState(queue))).toBeGreaterThan(limits.queue_age_ms_max);
    },
  }),
  open('keeps the queue of a replay that is in progress', {
    ...{ seeds: [...opened, replaying(), pending], answer: ['ok'], changes: [] },
  }),
  open('drops the queue of an earlier replay', {
    seeds: [...opened, replaying({ replay: 4 }), pending],
    ...{ answer: ['ok'], changes: [state, stream] },
  }),
  open('reports a missing queue', { seeds: [seeds.open(home)], answer: ['queue_missing'] }),
  open('refuses a different run id', stale, { run: 'other' }),
];

const read = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/read_replay', what, keys: at },
  args: { bot: `${bot}`, from: '0', last: '0', slots: [], ...args },
  ...more,
});
const old = `${Date.now() - 60_000}`;
const reads: Case[] = [
  read('reads the newest update of a bot without a replay', { seeds: opened, answer: ['ok', 41] }),
  read('reads the progress of a replay', {
    seeds: [...opened, replaying({ dead: 1, err: 'down' }), pending],
    answer: ['ok', 41, 5, 16, 2, 1, 1, 'down', 0, []],
  }),
  read('reports a live update that is late', {
    seeds: [...opened, replaying(), seeds.entry(30, { t: old })],
    answer: ['ok', 41, 5, 16, 2, 0, null, null, 1, []],
  }),
  read('does not count a live update that waits for a retry as late', {
    seeds: [seeds.open(home), seeds.queue({ hook: 7, cur: 30 }), replaying(), seeds.entry(30, { t: old })],
    answer: ['ok', 41, 5, 16, 2, 0, null, null, 0, []],
  }),
  read('reports a receiver that is down', {
    seeds: [seeds.open(home), seeds.queue({ hook: 7, hold: Date.now() + 24 * 3_600_000 }), replaying()],
    answer: ['ok', 41, 5, 16, 2, 0, null, null, 1, []],
  }),
  read(
    'reads pending updates between two ids',
    {
      seeds: [
        seeds.open(home),
        seeds.queue({ hook: 7, cur: 40 }),
        replaying(),
        seeds.entry(16),
        seeds.entry(17),
        seeds.entry(20),
        seeds.entry(31),
      ],
      answer: [
        ...['ok', 41, 5, 16, 2, 0, null, null, 0],
        expect.toSatisfy(([[rows, more]]) => rowsOf('17-0,20-0').asymmetricMatch(rows) && Number(more) === 0),
      ],
    },
    { from: '16', last: '30', slots: ['0'] },
  ),
];

const updates = [
  ...['17', 'message', chat, '1', 'r', 'f', 'p', 'y', 'x'],
  ...['18', 'edited_message', chat, '2', 'R', 'F', '', '', ''],
];
const feed = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/feed_replay', what, keys: at },
  args: { bot: `${bot}`, replay: '5', from: '16', to: '20', updates, ...args },
  ...more,
});
const feeds: Case[] = [
  feed('adds updates under the next ids of the bot, and moves the cursor', {
    seeds: [...opened, replaying()],
    answer: ['ok', 1],
    changes: [state, stream, `queue_state:${bot}`, due],
    async after(client) {
      const rows = await client.xrange(keys.queue(queue), '-', '+');
      expect(rows.map(([id, fields]) => [id, fields.at(-1)])).toEqual([
        ['42-0', '17'],
        ['43-0', '18'],
      ]);
      expect(await stateOf(client, 'at', 'fed', 'seq')).toEqual(['20', '4', '43']);
      expect(await client.hget(keys.queueState(bot), 'seq')).toBe('43');
    },
  }),
  feed(
    'only moves the cursor if no update is left',
    {
      seeds: [...opened, replaying()],
      ...{ answer: ['ok', 0], changes: [state] },
    },
    { updates: [] },
  ),
  feed('refuses a step that does not start at the cursor', {
    ...{ seeds: [...opened, replaying({ at: 20 })], answer: ['moved'] },
  }),
  feed('refuses a step of another replay', {
    ...{ seeds: [...opened, replaying({ replay: 6 })], answer: ['moved'] },
  }),
  feed('reports a missing queue', { seeds: [seeds.open(home), replaying()], answer: ['queue_missing'] }),
  feed('refuses while the journal is full', {
    seeds: [seeds.open(home, { hw: 1 }), seeds.stream(keys.journal(home), 1), replaying()],
    answer: ['journal_full'],
  }),
  feed('refuses a different run id', stale, { run: 'other' }),
];

const close = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/close_replay', what, keys: at, args: { bot: `${bot}`, replay: '5', ...args } },
  ...more,
});
const closes: Case[] = [
  close('drops the queue of a replay', {
    seeds: [...opened, replaying(), pending, zset(keys.webhooksDue(home), 1, `${queue}`)],
    ...{ answer: ['ok'], changes: [state, stream, due] },
  }),
  close('keeps the queue of another replay', {
    ...{ seeds: [...opened, replaying({ replay: 6 })], answer: ['ok'], changes: [] },
  }),
  close('refuses a different run id', stale, { run: 'other' }),
];

const letters: Case[] = [
  {
    ...{ script: 'webhooks/bury', what: 'journals a dead letter of a replay under its target' },
    keys: {
      ...{ meta: keys.meta(home), journal: keys.journal(home), state: keys.queueState(queue) },
      ...{ queue: keys.queue(queue), parked: keys.parked(queue), retries: keys.retries(queue) },
      ...{ attempts: keys.attempts(queue), due: keys.webhooksDue(home) },
    },
    args: { bot: `${queue}`, fence: `${base}`, reason: 'expired', ids: ['40'] },
    seeds: [...opened, replaying({ to: 3, fence: base }), pending],
    answer: ['ok', 1],
    changes: ['meta', 'journal', state, stream],
    async after(client) {
      const [[, fields] = ['', []]] = await client.xrange(keys.journal(home), '-', '+');
      expect(fields[1]).toBe(`dead:${bot}:40`);
      expect(fields[3]).toMatch(/l\W*3$/);
    },
  },
];

export const historyReplayCases: readonly Case[] = [...opens, ...reads, ...feeds, ...closes, ...letters];

/** Test cases for webhooks/lease, webhooks/bury and webhooks/sweep, with every status that they can return. */
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Case } from './cases.js';
import {
  again,
  any,
  at,
  chat,
  due,
  fence,
  formerFence,
  home,
  hooked,
  later,
  type More,
  member,
  mine,
  parked,
  retries,
  rowsOf,
  state,
  stream,
  three,
  waits,
  zset,
} from './webhook_world.js';
import { base, bot, keys, seeds } from './world.js';

const lease = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/lease', what, keys: at, args: { bot: `${bot}`, limit: 10, ...args } },
  ...more,
});
const leased = [state, 'meta', due];
const leases: Case[] = [
  lease('leases a bot with its pending updates', {
    seeds: [...three, hooked()],
    answer: ['ok', `${base + 1}`, '7', '7', any, [], rowsOf('39-0,40-0,41-0'), '41', '0', 0, -1, 0],
    changes: leased,
    async after(client) {
      const [now] = await client.time();
      const until = Number(await client.hget(keys.queueState(bot), 'leased'));
      expect(Math.abs(until - Number(now) * 1_000 - limits.webhook_lease_ms)).toBeLessThan(4_000);
      expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBe(`${until}`);
    },
  }),
  lease('leases a due chat and parks the updates behind it', {
    seeds: [
      ...three,
      hooked({ cur: 39 }),
      zset(keys.parked(bot), 0, member(39)),
      zset(keys.retries(bot), 1, chat),
      seeds.hash(keys.attempts(bot), { [chat]: '39 4' }),
    ],
    answer: ['ok', any, '7', '7', any, again([chat, '4', '39-0']), rowsOf('41-0'), '41', '39', 0, any, 0],
    changes: [...leased, parked, retries],
    async after(client) {
      expect(await client.zrange(keys.parked(bot), '0', '-1')).toEqual([member(39), member(40)]);
      expect(Number(await client.zscore(keys.retries(bot), chat))).toBeGreaterThan(Date.now());
    },
  }),
  lease('reads from the first entry under a new incarnation and ignores the cursor', {
    seeds: [...three, hooked({ cur: 41, fence: formerFence })],
    answer: ['ok', any, '7', '7', any, [], rowsOf('39-0,40-0,41-0'), '41', '0', 0, -1, 0],
    changes: leased,
  }),
  lease('removes a parked chat without updates', {
    seeds: [...three, hooked(), zset(keys.parked(bot), 0, member(12)), zset(keys.retries(bot), 1, chat)],
    answer: ['ok', any, '7', '7', any, [], rowsOf('39-0,40-0,41-0')],
    changes: [...leased, parked, retries],
  }),
  lease('leases one update for a receiver that was down', {
    seeds: [...three, hooked({ probes: 2 })],
    answer: ['ok', any, '7', '7', any, [], rowsOf('39-0'), '39', '0', 1, -1, 2],
    changes: leased,
  }),
  lease('records a lease that a dead worker left', {
    seeds: [...three, hooked({ leased: 5 })],
    answer: ['ok', any],
    changes: leased,
    after: async (client) => expect(await client.hget(keys.queueState(bot), 'strayed')).not.toBeNull(),
  }),
  lease(
    'refuses a different run id',
    { seeds: [...three, hooked()], answer: ['stale_run'] },
    { run: 'other' },
  ),
  lease('refuses a bot that polls', { seeds: [...three, seeds.queue()], answer: ['no_webhook'] }),
  lease('refuses a bot leased by another worker', {
    seeds: [...three, hooked({ leased: later })],
    answer: ['leased'],
  }),
  lease('refuses a bot whose receiver is paused', {
    seeds: [...three, hooked({ hold: later })],
    answer: ['held'],
  }),
];

const bury = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/bury', what, keys: at },
  args: { bot: `${bot}`, fence, reason: 'too_large', ids: ['39', '12'], ...args },
  ...more,
});
const burials: Case[] = [
  bury('writes a dead letter with its reason to the journal', {
    seeds: [...three, mine(), zset(keys.parked(bot), 0, member(39)), zset(keys.retries(bot), 1, chat)],
    answer: ['ok', 1],
    changes: [stream, state, 'journal', 'meta', parked, retries],
    async after(client) {
      const [entry] = await client.xrange(keys.journal(home), '-', '+');
      expect(entry?.[1][1]).toBe(`dead:${bot}:39`);
      expect(entry?.[1][3]).toContain('too_large');
    },
  }),
  bury('removes an inline query without a dead letter', {
    seeds: [...three.slice(0, 1), seeds.entry(39, { k: 'inline_query' }), mine()],
    answer: ['ok', 1],
    changes: [stream, state],
  }),
  bury(
    'writes no dead letter twice',
    { seeds: [...three, mine()], answer: ['ok', 0], changes: [] },
    { ids: ['12'] },
  ),
  bury('refuses a different run id', { seeds: [...three, mine()], answer: ['stale_run'] }, { run: 'other' }),
  bury('refuses when the journal’s reserve is used up', {
    seeds: [
      ...three,
      seeds.open(home, { hw: 1 }),
      seeds.stream(keys.journal(home), limits.journal_reserve),
      mine(),
    ],
    answer: ['journal_full'],
  }),
  bury(
    'refuses a fence of another incarnation',
    { seeds: [...three, mine({ fence: formerFence })], answer: ['fenced'] },
    { fence: formerFence },
  ),
  bury('refuses if another worker has the lease', {
    seeds: [...three, hooked({ fence: 5 })],
    answer: ['fenced'],
  }),
];

const sweep = (what: string, more: More): Case => ({
  script: 'webhooks/sweep',
  what,
  keys: { due: keys.webhooksDue(home), state: keys.queueStateRoot(home) },
  args: { limit: 10 },
  ...more,
});
const sweeps: Case[] = [
  sweep('wakes workers for due bots', {
    seeds: [hooked(), waits],
    answer: ['ok', [Buffer.from(`${bot}`)], [], 0],
    changes: [state, due],
  }),
  sweep('does not wake a worker twice within a short time', {
    seeds: [hooked({ rung: later }), waits],
    answer: ['ok', [], [], 0],
    changes: [due],
  }),
  sweep('reports bots whose wake-up had no effect', {
    seeds: [hooked({ rung: 1 }), waits],
    answer: ['ok', [], [Buffer.from(`${bot}`)], 0],
    changes: [state, due],
  }),
  sweep('postpones a leased bot to the end of its lease', {
    seeds: [hooked({ leased: later }), waits],
    answer: ['ok', [], [], 0],
    changes: [due],
    after: async (client) => expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBe(`${later}`),
  }),
  sweep('removes a bot that polls', {
    seeds: [seeds.queue(), waits],
    answer: ['ok', [], [], 0],
    changes: [due],
  }),
  sweep('skips bots that are not due', {
    seeds: [hooked(), zset(keys.webhooksDue(home), later, bot)],
    answer: ['ok', [], [], 0],
    changes: [],
  }),
];

export const webhookCases: readonly Case[] = [...leases, ...burials, ...sweeps];

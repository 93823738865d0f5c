/** Test cases for the script that runs one step of a delivery, with every status that it can return. */
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack } from '../../src/store/core/codec.js';
import type { Case } from './cases.js';
import {
  again,
  any,
  at,
  attempts,
  chat,
  due,
  fence,
  field,
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
  zset,
} from './webhook_world.js';
import { base, bot, keys, seeds } from './world.js';

const report = (more = {}) =>
  pack({
    ...{ acked: [], repeated: false, failed: [], chats: 10, updates: 10, error: '', gone: '' },
    ...{ hold: 0, probes: 0, hook: 7 },
    ...more,
  });
const advance = (what: string, more: More, reported = {}, args = {}): Case => ({
  ...{ script: 'webhooks/advance', what, keys: at },
  args: {
    ...{ bot: `${bot}`, fence, since: '7', after: '41', safe: '41', leave: 'stay' },
    ...{ report: report(reported), ...args },
  },
  ...more,
});

const failedChat = [chat, 60_000, '3', '39', '40'];
const steps: Case[] = [
  advance(
    'acknowledges updates and renews the lease',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 0, 0],
      changes: [stream, state, due],
      async after(client) {
        expect((await client.xrange(keys.queue(bot), '-', '+')).map(([id]) => id)).toEqual(['41-0']);
        expect([await field(client, 'bytes'), await field(client, 'cur')]).toEqual(['80', '41']);
      },
    },
    { acked: ['39', 100, '', '40', 120, ''] },
  ),
  advance(
    'does not count an update again that was acknowledged before',
    { seeds: [...three, mine()], answer: ['ok', '7'], changes: [state, due] },
    { acked: ['12', 100, ''] },
  ),
  advance(
    'does not count the bytes of acknowledged updates that were removed from the start of the queue',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7'],
      changes: [stream, state, due],
      after: async (client) => expect(await field(client, 'bytes')).toBe('180'),
    },
    { acked: ['40', 120, '', '9', 100, '', '38', 70, ''] },
  ),
  advance(
    'counts repeated acknowledgements only if their updates are in the queue',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7'],
      changes: [stream, state, due],
      after: async (client) => expect(await field(client, 'bytes')).toBe('180'),
    },
    { acked: ['42', 100, '', '40', 120, ''], repeated: true },
  ),
  advance(
    'parks a failed chat and records the error',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, 60_000],
      changes: [state, due, parked, retries, attempts],
      async after(client) {
        expect(await client.zrange(keys.parked(bot), '0', '-1')).toEqual([member(39), member(40)]);
        expect(await client.hgetall(keys.attempts(bot))).toEqual({ [chat]: '39 3' });
        expect(await field(client, 'err')).toBe('why');
      },
    },
    { failed: [failedChat], error: 'why' },
  ),
  advance(
    'parks new updates of a chat that fails in the same step',
    {
      seeds: [...three, seeds.entry(42), mine()],
      answer: ['ok', '7', any, [], [], '42', 0, 60_000],
      changes: [state, due, parked, retries, attempts],
      after: async (client) =>
        expect(await client.zrange(keys.parked(bot), '0', '-1')).toEqual(
          [39, 40, 42].map((id) => member(id)),
        ),
    },
    { failed: [failedChat] },
  ),
  advance(
    'parks no dropped updates',
    { seeds: [seeds.open(home), mine()], answer: ['ok', '7'], changes: [state, due] },
    { failed: [failedChat] },
  ),
  advance(
    'makes the next update of a parked chat due once the first is acknowledged',
    {
      seeds: [
        ...three,
        mine(),
        zset(keys.parked(bot), 0, member(39), 0, member(40)),
        zset(keys.retries(bot), later, chat),
        seeds.hash(keys.attempts(bot), { [chat]: '39 3' }),
      ],
      answer: ['ok', '7', any, again([chat, '0', '40-0']), []],
      changes: [stream, state, due, parked, retries, attempts],
    },
    { acked: ['39', 100, chat] },
  ),
  advance(
    'records the start of a run of 410 answers',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, -1, expect.stringMatching(/^\d{13}$/)],
      changes: [state, due],
    },
    { gone: 'set' },
  ),
  advance(
    'keeps the start of a run of 410 answers',
    {
      seeds: [...three, mine({ gone: 5 })],
      answer: ['ok', '7', any, [], [], '41', 0, -1, '5'],
      changes: [state, due],
    },
    { gone: 'set' },
  ),
  advance(
    'ends a run of 410 answers',
    {
      seeds: [...three, mine({ gone: 5 })],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null],
      changes: [state, due],
    },
    { gone: 'clear' },
  ),
  advance(
    'releases the lease when no update is left',
    {
      seeds: [...three, mine(), zset(keys.webhooksDue(home), later, bot)],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 1, 0],
      changes: [state, due],
      async after(client) {
        expect(await field(client, 'leased')).toBeNull();
        expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBeNull();
      },
    },
    {},
    { leave: 'idle' },
  ),
  advance(
    'releases the lease with unread updates and requests an immediate wake-up',
    {
      seeds: [...three, mine({ dropped_to: 6 })],
      answer: ['ok', '7', any, [], [], '40', 0, -1, null, 1, 1, '6'],
      changes: [state, due],
      after: async (client) => expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).not.toBeNull(),
    },
    { updates: 0, chats: 1 },
    { leave: 'idle', after: '40', safe: '40' },
  ),
  advance(
    'ignores failures of a previous receiver',
    {
      seeds: [...three, mine({ hook_set: 9, hook: 9 })],
      answer: ['ok', '9', any, [], [], '41', 0, -1, null, 1, 1, '0'],
      changes: [state, due],
      async after(client) {
        const names = ['hold', 'probes', 'err', 'gone'] as const;
        expect(await Promise.all(names.map((name) => field(client, name)))).toEqual([null, null, null, null]);
      },
    },
    { hold: 30_000, probes: 4, error: 'why', gone: 'set', hook: 8 },
    { leave: 'now', safe: '39' },
  ),
  advance(
    'releases the lease until the next retry',
    {
      seeds: [...three, mine(), zset(keys.parked(bot), 0, member(39)), zset(keys.retries(bot), later, chat)],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 1, 0],
      changes: [state, due],
      after: async (client) => expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBe(`${later}`),
    },
    {},
    { leave: 'idle' },
  ),
  advance(
    'keeps the lease when an update arrived',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], rowsOf('41-0'), '41', 0, -1, null, 0, 0],
      changes: [state, due],
      after: async (client) => expect(await field(client, 'cur')).toBe('40'),
    },
    {},
    { leave: 'idle', after: '40', safe: '40' },
  ),
  advance(
    'releases the lease with unfinished work and requests an immediate wake-up',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 1, 1],
      changes: [state, due],
    },
    {},
    { leave: 'now', safe: '39' },
  ),
  advance(
    'releases the lease and pauses a failed receiver for a while',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 1, 0],
      changes: [state, due],
      async after(client) {
        expect(Number(await field(client, 'hold'))).toBeGreaterThan(Date.now() + 20_000);
        expect(await field(client, 'probes')).toBe('4');
      },
    },
    { hold: 30_000, probes: 4 },
    { leave: 'now', safe: '39' },
  ),
  advance(
    'acknowledges without parking after the webhook was deleted',
    {
      seeds: [...three, seeds.queue({ fence, leased: later, bytes: 300 })],
      answer: ['ok', 0, any, [], [], '41', 0, limits.webhook_grace_ms, null, 0, 0],
      changes: [stream, state],
      after: async (client) => expect(await field(client, 'leased')).toBe(`${later}`),
    },
    { acked: ['39', 100, ''], failed: [[chat, 0, '1', '40']] },
  ),
  advance(
    'releases the lease after the webhook was deleted',
    {
      seeds: [...three, seeds.queue({ fence, leased: later })],
      answer: ['ok', 0, any, [], [], '41', 0, any, null, 1, 0],
      changes: [state],
    },
    {},
    { leave: 'now' },
  ),
  advance(
    'releases the lease with a wake-up after another webhook was set',
    {
      seeds: [...three, mine({ hook: 9, since: 9 })],
      answer: ['ok', 0, any, [], [], '41', 0, any, null, 1, 1],
      changes: [state, due],
    },
    {},
    { leave: 'now' },
  ),
  advance(
    'refuses a fence of another incarnation',
    { seeds: [...three, mine({ fence: formerFence })], answer: ['fenced'] },
    { acked: ['39', 100, ''] },
    { fence: formerFence },
  ),
  advance(
    'refuses a different run id',
    { seeds: [...three, mine()], answer: ['stale_run'] },
    {},
    { run: 'other' },
  ),
  advance(
    'refuses if another worker has the lease',
    { seeds: [...three, hooked({ fence: base + 5 })], answer: ['fenced'] },
    { acked: ['39', 100, ''] },
  ),
];

export const stepCases: readonly Case[] = steps;

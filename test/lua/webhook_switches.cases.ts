/** Test cases for the script that switches between polling and webhook, with every status that it can return. */
import { expect } from 'vitest';
import type { Case } from './cases.js';
import {
  at,
  chat,
  due,
  field,
  home,
  later,
  type More,
  member,
  mine,
  parked,
  retries,
  state,
  stream,
  three,
  waits,
  zset,
} from './webhook_world.js';
import { bot, keys, seeds } from './world.js';

const change = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/switch', what, keys: at },
  args: { bot: `${bot}`, version: '9', set: '9', active: true, drop: '', mask: '', ...args },
  ...more,
});
const off = { active: false };
const index = [zset(keys.parked(bot), 0, member(39)), zset(keys.retries(bot), later, chat)];
const switches: Case[] = [
  change('switches from polling with pending updates to a webhook', {
    seeds: [...three, seeds.queue()],
    answer: ['ok', 1],
    changes: [state, due],
    async after(client) {
      const names = ['hook', 'since', 'hook_version', 'hook_set'];
      expect(await client.hmget(keys.queueState(bot), ...names)).toEqual(['9', '9', '9', '9']);
    },
  }),
  change('switches from polling without updates to a webhook', {
    seeds: [seeds.open(home), seeds.queue()],
    answer: ['ok', 0],
    changes: [state],
  }),
  change('makes failed updates due at once for another webhook', {
    seeds: [...three, ...index, mine({ err: 'why', err_at: 5, hold: 5 })],
    answer: ['ok', 0],
    changes: [state, due, retries],
    async after(client) {
      expect([await field(client, 'err'), await field(client, 'since')]).toEqual([null, '7']);
      expect(Number(await client.zscore(keys.retries(bot), chat))).toBeLessThan(later);
    },
  }),
  change(
    'keeps the worker’s lease and all updates when it switches to polling',
    {
      seeds: [...three, ...index, mine(), waits],
      answer: ['ok', 0],
      changes: [state, due, parked, retries],
      async after(client) {
        expect(await field(client, 'leased')).toBe(`${later}`);
        expect(await field(client, 'hook')).toBeNull();
        expect(await client.xlen(keys.queue(bot))).toBe(3);
      },
    },
    off,
  ),
  change(
    'drops pending updates and stores a mask',
    {
      seeds: [...three, ...index, mine(), waits],
      answer: ['ok', 0],
      changes: [state, due, parked, retries, stream, 'journal', 'meta'],
      async after(client) {
        expect([await field(client, 'bytes'), await field(client, 'mask')]).toEqual(['0', '5']);
        expect(await field(client, 'dropped_to')).toBe(await field(client, 'seq'));
      },
    },
    { ...off, drop: '9', mask: '5' },
  ),
  change(
    'drops nothing on a repeat',
    { seeds: [...three, mine({ hook_version: 9, dropped: 9 })], answer: ['ok', 0], changes: [] },
    { drop: '9' },
  ),
  change(
    'ignores a late version',
    { seeds: [...three, mine({ hook_version: 11 })], answer: ['ok', 0], changes: [] },
    off,
  ),
  change(
    'keeps failures when the signing secret changes, and updates the worker’s version',
    {
      seeds: [...three, ...index, mine({ hook_set: 7, err: 'why', err_at: 5, gone: 5, hold: 5, probes: 2 })],
      answer: ['ok', 0],
      changes: [state],
      async after(client) {
        const names = [
          'hook',
          'hook_version',
          'hook_set',
          'since',
          'err',
          'err_at',
          'gone',
          'hold',
          'probes',
        ];
        const kept = ['9', '9', '7', '7', 'why', '5', '5', '5', '2'];
        expect(await client.hmget(keys.queueState(bot), ...names)).toEqual(kept);
        expect(await client.zscore(keys.retries(bot), chat)).toBe(`${later}`);
      },
    },
    { set: '7' },
  ),
  change(
    'keeps failures when the signing secret of a queue from an older program changes',
    {
      seeds: [...three, mine({ err: 'why' })],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'err')).toBe('why'),
    },
    { set: '7' },
  ),
  change(
    'pauses deliveries while the webhook stays set',
    {
      seeds: [...three, mine({ hook_set: 7 })],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'hook')).toBeNull(),
    },
    { ...off, set: '7' },
  ),
  change(
    'resumes deliveries of a webhook that stayed set',
    {
      seeds: [...three, seeds.queue({ hook_version: 8, hook_set: 7 })],
      answer: ['ok', 1],
      changes: [state, due],
      after: async (client) => expect(await field(client, 'hook')).toBe('9'),
    },
    { set: '7' },
  ),
  change(
    'accepts a signing secret for a bot that polls',
    {
      seeds: [...three, seeds.queue()],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'hook')).toBeNull(),
    },
    { ...off, set: '0' },
  ),
  change(
    'drops pending updates of a bot that polls',
    {
      seeds: [...three, seeds.queue()],
      answer: ['ok', 0],
      changes: [state, stream],
      after: async (client) => expect(await field(client, 'bytes')).toBe('0'),
    },
    { ...off, set: '0', drop: '9' },
  ),
  change(
    'drops the assignments of consumers together with the updates',
    {
      seeds: [...three, seeds.queue(), seeds.hash(keys.consumption(bot), { cur: 41 })],
      answer: ['ok', 0],
      changes: [state, stream, `consumption:${bot}`],
      after: async (client) => expect(await client.exists(keys.consumption(bot))).toBe(0),
    },
    { ...off, set: '0', drop: '9' },
  ),
  change('reports a missing queue', { seeds: [seeds.open(home)], answer: ['queue_missing'] }),
  change('refuses a different run id', {
    seeds: [seeds.open(home, { run: 'before' })],
    answer: ['stale_run'],
  }),
];

export const switchCases: readonly Case[] = switches;

/** Calls of the script that switches between polling and webhook, and every status it can end in. */
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
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
  change('from polling, with updates that wait', {
    seeds: [...three, seeds.queue()],
    answer: ['ok', 1],
    changes: [state, due],
    async after(client) {
      const names = ['hook', 'since', 'hook_version', 'hook_set'];
      expect(await client.hmget(keys.queueState(bot), ...names)).toEqual(['9', '9', '9', '9']);
    },
  }),
  change('from polling, with none', {
    seeds: [seeds.open(home), seeds.queue()],
    answer: ['ok', 0],
    changes: [state],
  }),
  change('another webhook: its receiver is given at once what failed', {
    seeds: [...three, ...index, mine({ err: 'why', err_at: 5, hold: 5 })],
    answer: ['ok', 0],
    changes: [state, due, retries],
    async after(client) {
      expect([await field(client, 'err'), await field(client, 'since')]).toEqual([null, '7']);
      expect(Number(await client.zscore(keys.retries(bot), chat))).toBeLessThan(later);
    },
  }),
  change(
    'to polling: the lease of its worker is cut short, and nothing is lost',
    {
      seeds: [...three, ...index, mine(), waits],
      answer: ['ok', 0],
      changes: [state, due, parked, retries],
      async after(client) {
        expect(Number(await field(client, 'leased'))).toBeLessThan(Date.now() + 2 * limits.webhook_grace_ms);
        expect(await field(client, 'hook')).toBeNull();
        expect(await client.xlen(keys.queue(bot))).toBe(3);
      },
    },
    off,
  ),
  change(
    'drops what waits, and takes a mask',
    {
      seeds: [...three, ...index, mine(), waits],
      answer: ['ok', 0],
      changes: [state, due, parked, retries, stream, 'journal', 'meta'],
      async after(client) {
        expect([await field(client, 'bytes'), await field(client, 'mask')]).toEqual(['0', '5']);
      },
    },
    { ...off, drop: '9', mask: '5' },
  ),
  change(
    'again: drops nothing',
    { seeds: [...three, mine({ hook_version: 9, dropped: 9 })], answer: ['ok', 0], changes: [] },
    { drop: '9' },
  ),
  change(
    'a version that came late changes nothing',
    { seeds: [...three, mine({ hook_version: 11 })], answer: ['ok', 0], changes: [] },
    off,
  ),
  change(
    'another signing secret: what failed stays as it is, and the worker hears of it',
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
    'another signing secret of a queue that was switched before versions were two',
    {
      seeds: [...three, mine({ err: 'why' })],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'err')).toBe('why'),
    },
    { set: '7' },
  ),
  change(
    'deliveries end, though the webhook stays set',
    {
      seeds: [...three, mine({ hook_set: 7 })],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'hook')).toBeNull(),
    },
    { ...off, set: '7' },
  ),
  change(
    'deliveries go on of a webhook that stayed set',
    {
      seeds: [...three, seeds.queue({ hook_version: 8, hook_set: 7 })],
      answer: ['ok', 1],
      changes: [state, due],
      after: async (client) => expect(await field(client, 'hook')).toBe('9'),
    },
    { set: '7' },
  ),
  change(
    'the signing secret of a bot that polls',
    {
      seeds: [...three, seeds.queue()],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'hook')).toBeNull(),
    },
    { ...off, set: '0' },
  ),
  change(
    'drops what waits of a bot that polls',
    {
      seeds: [...three, seeds.queue()],
      answer: ['ok', 0],
      changes: [state, stream],
      after: async (client) => expect(await field(client, 'bytes')).toBe('0'),
    },
    { ...off, set: '0', drop: '9' },
  ),
  change('no queue', { seeds: [seeds.open(home)], answer: ['queue_missing'] }),
  change('another history', { seeds: [seeds.open(home, { run: 'before' })], answer: ['stale_run'] }),
];

export const switchCases: readonly Case[] = switches;

/** Calls of the script that polls, and every status it can end in. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Case } from './cases.js';
import { full, home, ids, type More, open, queue, state, stream, three } from './update_world.js';
import { base, bot, keys, seeds } from './world.js';

const look = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'updates/poll', what, keys: queue },
  args: { bot: `${bot}`, poll: 'mine', first: true, offset: '', limit: '100', mask: '', ...args },
  ...more,
});
const leaves =
  (...left: string[]) =>
  async (client: Redis) =>
    expect((await client.xrange(keys.queue(bot), '-', '+')).map(([id]) => id)).toEqual(left);
const polls: Case[] = [
  look('takes its place and reads', {
    seeds: three,
    answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '39-0,40-0,41-0')],
    changes: [state],
  }),
  look(
    'confirms below its offset',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [stream, state],
      after: leaves('40-0', '41-0'),
    },
    { offset: '40' },
  ),
  look(
    'confirms all',
    { seeds: three, answer: ['ok', []], changes: [stream, state], after: leaves() },
    { offset: '42' },
  ),
  look(
    'past the next update: confirms nothing',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [state],
      after: leaves('39-0', '40-0', '41-0'),
    },
    { offset: '43' },
  ),
  look(
    'keeps the last two',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [stream, state],
      after: leaves('40-0', '41-0'),
    },
    { offset: '-2' },
  ),
  look(
    'keeps more than there are',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [state],
      after: leaves('39-0', '40-0', '41-0'),
    },
    { offset: '-9' },
  ),
  look(
    'a new mask',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [state, 'journal', 'meta'],
      after: async (client) => {
        expect(await client.hget(keys.queueState(bot), 'mask')).toBe('5');
        const [[, fields] = []] = await client.xrange(keys.journal(home), '-', '+');
        expect(fields?.slice(0, 2)).toEqual(['k', `mask:${bot}`]);
      },
    },
    { mask: '5' },
  ),
  look(
    'the mask that it has: nothing goes to Postgres',
    {
      seeds: [...three, seeds.queue({ mask: 5 })],
      answer: ['ok', expect.anything()],
      changes: [state],
    },
    { mask: '5' },
  ),
  look(
    'a new mask while the journal is full',
    { seeds: [...full(), ...three.slice(1), seeds.queue({ mask: 4 })], answer: ['journal_full'] },
    { mask: '5' },
  ),
  look(
    'the mask that it has while the journal is full',
    {
      seeds: [...full(), ...three.slice(1), seeds.queue({ mask: 5 })],
      answer: ['ok', expect.anything()],
      changes: [state],
    },
    { mask: '5' },
  ),
  look(
    'looks again',
    { seeds: [...three, seeds.queue({ poll: 'mine' })], answer: ['ok', expect.anything()], changes: [] },
    { first: false },
  ),
  look('what is over a day old is buried', {
    seeds: [
      open(),
      seeds.queue({ bytes: 300 }),
      seeds.entry(40, { t: `${Date.now() - limits.queue_age_ms_max - 1_000}` }),
      seeds.entry(41),
    ],
    answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '41-0')],
    changes: [stream, state, 'journal', 'meta'],
    async after(client) {
      const [entry] = await client.xrange(keys.journal(home), '-', '+');
      expect([entry?.[0], entry?.[1][1]]).toEqual([`${base + 1}-0`, `dead:${bot}:40`]);
    },
  }),
  look('another run', { seeds: three, answer: ['stale_run'] }, { run: 'other' }),
  look('no queue', { seeds: [open()], answer: ['queue_missing'] }),
  look('a webhook is set', { seeds: [...three, seeds.queue({ hook: 'w' })], answer: ['webhook_active'] }),
  look(
    'a webhook was set meanwhile',
    { seeds: [...three, seeds.queue({ hook: 'w', poll: 'mine' })], answer: ['terminated_by_webhook'] },
    { first: false },
  ),
  look('a webhook was just deleted: what is open may still be acknowledged', {
    seeds: [...three, seeds.queue({ leased: Date.now() + 600_000 })],
    answer: ['ok', []],
    changes: [state],
  }),
  look(
    'another took its place',
    { seeds: [...three, seeds.queue({ poll: 'theirs' })], answer: ['terminated'] },
    { first: false, offset: '42' },
  ),
];

export const pollCases: readonly Case[] = polls;

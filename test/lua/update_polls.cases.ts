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
  look('becomes the current poll and reads updates', {
    seeds: three,
    answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '39-0,40-0,41-0')],
    changes: [state],
  }),
  look(
    'confirms updates below its offset',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [stream, state],
      after: leaves('40-0', '41-0'),
    },
    { offset: '40' },
  ),
  look(
    'confirms all updates',
    { seeds: three, answer: ['ok', []], changes: [stream, state], after: leaves() },
    { offset: '42' },
  ),
  look(
    'confirms nothing for an offset past the next update',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [state],
      after: leaves('39-0', '40-0', '41-0'),
    },
    { offset: '43' },
  ),
  look(
    'keeps only the last two updates for offset -2',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [stream, state],
      after: leaves('40-0', '41-0'),
    },
    { offset: '-2' },
  ),
  look(
    'keeps all updates if there are fewer than the offset keeps',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [state],
      after: leaves('39-0', '40-0', '41-0'),
    },
    { offset: '-9' },
  ),
  look(
    'stores a new mask',
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
    'writes nothing to the journal for an unchanged mask',
    {
      seeds: [...three, seeds.queue({ mask: 5 })],
      answer: ['ok', expect.anything()],
      changes: [state],
    },
    { mask: '5' },
  ),
  look(
    'refuses a new mask while the journal is full',
    { seeds: [...full(), ...three.slice(1), seeds.queue({ mask: 4 })], answer: ['journal_full'] },
    { mask: '5' },
  ),
  look(
    'accepts an unchanged mask while the journal is full',
    {
      seeds: [...full(), ...three.slice(1), seeds.queue({ mask: 5 })],
      answer: ['ok', expect.anything()],
      changes: [state],
    },
    { mask: '5' },
  ),
  look(
    'reads the queue again for the same poll',
    { seeds: [...three, seeds.queue({ poll: 'mine' })], answer: ['ok', expect.anything()], changes: [] },
    { first: false },
  ),
  look('moves updates older than a day to dead letters', {
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
  look('refuses a different run id', { seeds: three, answer: ['stale_run'] }, { run: 'other' }),
  look('reports a missing queue', { seeds: [open()], answer: ['queue_missing'] }),
  look('refuses a poll while a consumer has a lease', {
    seeds: [...three, seeds.queue({ poll: `*${Date.now() + 600_000}` })],
    answer: ['shared'],
  }),
  look('becomes the current poll once no consumer has a lease', {
    seeds: [...three, seeds.queue({ poll: `*${Date.now() - 1}` })],
    answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '39-0,40-0,41-0')],
    changes: [state],
    after: async (client) => expect(await client.hget(keys.queueState(bot), 'poll')).toBe('mine'),
  }),
  look(
    'ends a poll that a consumer replaced',
    {
      seeds: [...three, seeds.queue({ poll: `*${Date.now() + 600_000}` })],
      answer: ['terminated'],
    },
    { first: false },
  ),
  look('refuses a poll while a webhook is set', {
    seeds: [...three, seeds.queue({ hook: 'w' })],
    answer: ['webhook_active'],
  }),
  look(
    'ends a poll once a webhook was set',
    { seeds: [...three, seeds.queue({ hook: 'w', poll: 'mine' })], answer: ['terminated_by_webhook'] },
    { first: false },
  ),
  look('returns nothing just after a webhook was deleted, since open requests may still be acknowledged', {
    seeds: [...three, seeds.queue({ leased: Date.now() + 600_000 })],
    answer: ['ok', []],
    changes: [state],
  }),
  look(
    'ends a poll that a newer one replaced',
    { seeds: [...three, seeds.queue({ poll: 'theirs' })], answer: ['terminated'] },
    { first: false, offset: '42' },
  ),
];

const follow = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'updates/follow', what, keys: { ...queue, consumption: keys.consumption(bot) } },
  args: { name: '', poll: 'mine', after: '0', limit: '100', ...args },
  ...more,
});
const streaming = [...three, seeds.queue({ poll: 'mine' })];
const rows = (...expected: string[]) => expect.toSatisfy((given) => ids(given).join() === expected.join());
const follows: Case[] = [
  follow('reads the updates after the last one that the stream sent', {
    seeds: streaming,
    answer: ['ok', rows('39-0', '40-0', '41-0'), 0, 39, 41],
  }),
  follow(
    'reads nothing before the last update that the stream sent',
    { seeds: streaming, answer: ['ok', rows('41-0'), 0, 39, 41] },
    { after: '40' },
  ),
  follow(
    'says that there may be more updates than it reads',
    { seeds: streaming, answer: ['ok', rows('39-0', '40-0'), 1, 39, 41] },
    { limit: '2' },
  ),
  follow(
    'reads no update for a full stream, but says which one is the oldest',
    { seeds: streaming, answer: ['ok', [], 1, 39, 41] },
    { limit: '0', after: '41' },
  ),
  follow('finds no update in an empty queue', {
    seeds: [open(), seeds.queue({ poll: 'mine', seq: 41 })],
    answer: ['ok', [], 0, 0, 41],
  }),
  follow('returns nothing just after a webhook was deleted, since open requests may still be acknowledged', {
    seeds: [...three, seeds.queue({ poll: 'mine', leased: Date.now() + 600_000 })],
    answer: ['ok', [], 0, 0, 41],
  }),
  follow('ends a stream that another poll replaced', {
    seeds: [...three, seeds.queue({ poll: 'theirs' })],
    answer: ['terminated'],
  }),
  follow('ends a stream once a webhook was set', {
    seeds: [...streaming, seeds.queue({ poll: 'mine', hook: 'w' })],
    answer: ['terminated_by_webhook'],
  }),
  follow(
    'reads nothing for a consumer, whose stream was not replaced',
    {
      seeds: [...three, seeds.queue({ poll: '*1' }), seeds.hash(keys.consumption(bot), { 'p:a': 'mine' })],
      answer: ['ok', [], 0, 0, 41],
    },
    { name: 'a' },
  ),
  follow(
    'ends the stream of a consumer that another poll of this consumer replaced',
    {
      seeds: [...three, seeds.queue({ poll: '*1' }), seeds.hash(keys.consumption(bot), { 'p:a': 'theirs' })],
      answer: ['terminated'],
    },
    { name: 'a' },
  ),
  follow(
    'ends the stream of a consumer that a poll without a consumer replaced',
    {
      seeds: [...three, seeds.queue({ poll: 'mine' }), seeds.hash(keys.consumption(bot), { 'p:a': 'mine' })],
      answer: ['terminated'],
    },
    { name: 'a' },
  ),
];

export const pollCases: readonly Case[] = [...polls, ...follows];

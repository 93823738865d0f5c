import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageKinds, unpack, unpackMessage } from '../../src/store/core/codec.js';
import type { Case } from './cases.js';
import { at, channel, chat, dueAt, fresh, heart, open, partition, post, used } from './post_world.js';
import { base, issued, keys, seeds } from './world.js';

const outbox = keys.outbox(partition);
const tell = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'posts/tell_counts', what },
  keys: {
    ...{ meta: at.meta, outbox, due: at.due },
    ...{ post: keys.postRoot(partition), chat: keys.chatRoot(partition) },
  },
  args: { token: 'T', limit: '2', gone: [], ...args },
  ...more,
});
const received = async (client: Redis) =>
  (await client.xrangeBuffer(outbox, '-', '+')).map(([, list]) => {
    const fields = Object.fromEntries(
      Array.from({ length: list.length / 2 }, (_, i) => [String(list[2 * i]), list[2 * i + 1] as Buffer]),
    ) as Record<string, Buffer>;
    const { date, kind } = unpackMessage(fields.r as Buffer);
    expect(Math.abs(date - Date.now() / 1000)).toBeLessThan(30);
    expect(kind).toBe(messageKinds.deleted);
    const [b, k, c, m] = ['b', 'k', 'c', 'm'].map((name) => String(fields[name]));
    return [b, k, c, m, unpack(fields.x as Buffer)];
  });
const missing = (...values: string[]) => values.map((value) => Buffer.from(value));
const changed = ['meta', 'outbox', 'counts_due'];

export const postCountCases: readonly Case[] = [
  tell('sends one update to all bots of the channel', {
    seeds: [open, chat({ b: '8,9' }), used, dueAt(5)],
    answer: ['ok', 1, 0, []],
    changes: changed,
    after: async (client) => {
      const counts = [[heart, 1, base]];
      expect(await received(client)).toEqual([
        ['8,9', 'message_reaction_count', `${channel.id}`, '7', counts],
      ]);
      expect(await client.exists(at.due)).toBe(0);
    },
  }),
  tell('sends empty counts once all reactions are removed', {
    seeds: [open, chat({ b: '8' }), fresh, dueAt(5)],
    answer: ['ok', 1, 0, []],
    changes: changed,
    after: async (client) => expect((await received(client))[0]?.at(-1)).toEqual([]),
  }),
  tell('sends nothing before it is due', {
    seeds: [open, chat({ b: '8' }), used, dueAt(Date.now() + 3_600_000)],
    answer: ['ok', 0, 0, []],
  }),
  tell('reports that more posts are due', {
    seeds: [open, chat({ b: '8' }), used, dueAt(5), dueAt(6, `${post + limits.partitions_max}`)],
    answer: ['ok', 1, 1, []],
    changes: changed,
    args: { token: 'T', limit: '1', gone: [] },
  }),
  tell('sends nothing for a deleted post or a channel without bots', {
    seeds: [
      ...[open, chat(), used, dueAt(5), dueAt(6, '1001')],
      seeds.hash(keys.post(1001), { c: `${channel.id}`, m: 8, x: 1, u: 0, v: base }),
    ],
    answer: ['ok', 0, 1, []],
    changes: ['meta', 'counts_due'],
    after: async (client) => expect(await client.exists(at.due)).toBe(0),
  }),
  tell('postpones a cold post', {
    seeds: [open, chat({ b: '8' }), dueAt(5)],
    answer: ['ok', 0, 0, missing('post_missing', `${post}`, issued('T'), '0')],
    changes: ['counts_due', `post:${post}:ticket`],
    after: async (client) =>
      expect(Number(await client.zscore(at.due, `${post}`))).toBeGreaterThan(Date.now()),
  }),
  tell('postpones a post of a cold channel', {
    seeds: [open, used, dueAt(5)],
    answer: ['ok', 0, 0, missing('chat_missing', `${post}`, issued('T'), `${channel.id}`)],
    changes: ['counts_due', `chat:${channel.id}:ticket`],
  }),
  tell(
    'removes a post that Postgres does not have',
    {
      seeds: [open, chat({ b: '8' }), dueAt(5)],
      answer: ['ok', 0, 0, []],
      changes: ['counts_due'],
    },
    { gone: [`${post}`] },
  ),
  tell('refuses while the outbox is full', {
    seeds: [open, chat({ b: '8' }), used, dueAt(5), seeds.stream(outbox, limits.outbox_length_max)],
    answer: ['outbox_full'],
  }),
  tell(
    'refuses a different run id',
    { seeds: [open, used, dueAt(5)], answer: ['stale_run'] },
    { run: 'other' },
  ),
];

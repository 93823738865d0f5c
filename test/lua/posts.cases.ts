import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Case } from './cases.js';
import {
  actedKey,
  at,
  channel,
  chat,
  closed,
  external,
  fresh,
  heart,
  key,
  member,
  open,
  other,
  partition,
  post,
  used,
} from './post_world.js';
import { base, incarnation, issued, keys, seeds, user } from './world.js';

const read = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'posts/read', what, keys: at },
  args: { token: 'T', who: `${user}`, ttl_ms: '1000', ...args },
  ...more,
});

const fill = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'posts/fill', what, keys: { meta: at.meta, post: key, ticket: at.post_ticket } },
  args: {
    token: issued('T'),
    ttl_ms: '60000',
    fields: ['c', `${channel.id}`, 'm', '7', 'v', '1', 'u', '0'],
    ...args,
  },
  ...more,
});
const ticket = seeds.text(at.post_ticket, 'T');

const refillTicket = keys.ticket(`${key}:refill`);
const refill = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{
    script: 'posts/refill',
    what,
    keys: { meta: at.meta, post: key, ticket: refillTicket, acted: at.acted },
  },
  args: { token: 'T', emoji: heart, reactors: [], ...args },
  ...more,
});
const back = { token: issued('T'), reactors: ['1', other, '2', external] };

export const postCases: readonly Case[] = [
  read('reads a post without reactions', {
    seeds: [open, chat(), fresh],
    answer: ['ok', expect.any(Array), ''],
  }),
  read('reads a post whose reactions are only in Postgres', { seeds: [open, chat(), used], answer: ['ok'] }),
  read('reports a cold post as missing', { seeds: [open, chat()], answer: ['post_missing', issued('T')] }),
  read('reports a cold channel as missing', {
    seeds: [open, fresh],
    answer: ['chat_missing', issued('T'), `${channel.id}`],
  }),
  read('reports a cold membership as missing', {
    seeds: [open, closed, fresh],
    answer: ['member_missing', issued('T'), `${channel.id}`],
  }),
  read('refuses a user who is not a member', {
    seeds: [open, closed, fresh, member('kicked')],
    answer: ['not_found'],
  }),
  read(
    'refuses a different run id',
    { seeds: [open, chat(), fresh], answer: ['stale_run'] },
    { run: 'other' },
  ),
  fill('stores a post with its ticket', {
    seeds: [open, ticket],
    answer: ['ok', 1],
    changes: ['meta', `post:${post}`, `post:${post}:ticket`],
    after: async (client) => {
      expect(await client.hget(key, 'g')).toBe(String(base + 1));
      expect(await client.pttl(key)).toBeGreaterThan(0);
    },
  }),
  fill('stores nothing without a ticket', { seeds: [open], answer: ['ok', 0] }),
  fill('keeps a post that is present', { seeds: [open, ticket, fresh], answer: ['ok', 0] }),
  fill(
    'stores nothing under a ticket of an earlier incarnation',
    { seeds: [open, ticket], answer: ['ok', 0] },
    { token: issued('T', incarnation - 1) },
  ),
  fill('refuses a different run id', { seeds: [open, ticket], answer: ['stale_run'] }, { run: 'other' }),
  {
    ...{
      script: 'posts/versions',
      what: 'reads hot, deleted and cold posts',
      keys: { post: keys.postRoot(partition) },
    },
    args: { posts: [`${post}`, '1001', '2001'] },
    seeds: [
      used,
      seeds.hash(keys.postRoot(partition).concat('1001'), { c: `${channel.id}`, m: 8, x: 1, v: base }),
    ],
    answer: ['ok', [`${base}`, '0', '0'].map((version) => Buffer.from(version))],
  },
  refill('creates a ticket for a short list of reactors', {
    seeds: [open, used],
    answer: ['ok', issued('T'), 0],
    changes: [`post:${post}:refill:ticket`],
  }),
  refill(
    'adds reactors missing from the list',
    {
      seeds: [open, used, seeds.text(refillTicket, 'T')],
      answer: ['ok', issued('T'), 2],
      changes: [`post:${post}`],
      after: async (client) =>
        expect(await client.hmgetBuffer(key, `l:${heart}`, `o:${heart}`)).toEqual([other, external]),
    },
    back,
  ),
  refill(
    'omits users who removed their reaction',
    {
      seeds: [open, used, seeds.text(refillTicket, 'T'), seeds.hash(actedKey(5), { 2: '', n: 0, v: base })],
      answer: ['ok', issued('T'), 1],
    },
    back,
  ),
  refill(
    'stores nothing without a ticket',
    { seeds: [open, used], answer: ['ok', issued('T'), limits.reactors_kept_max] },
    back,
  ),
  refill(
    'stores nothing under a ticket of an earlier incarnation',
    {
      seeds: [open, used, seeds.text(refillTicket, 'T')],
      answer: ['ok', issued('T', incarnation - 1), limits.reactors_kept_max],
    },
    { ...back, token: issued('T', incarnation - 1) },
  ),
  refill('refuses a different run id', { seeds: [open, used], answer: ['stale_run'] }, { run: 'other' }),
];

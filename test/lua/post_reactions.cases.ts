/** Calls of the script that puts a reaction on a post or takes it off, and every status it can end in. */
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack } from '../../src/store/core/codec.js';
import type { Case } from './cases.js';
import {
  actedKey,
  at,
  channel,
  chat,
  closed,
  crowded,
  dueAt,
  external,
  fresh,
  full,
  heart,
  key,
  latest,
  many,
  member,
  older,
  onceKey,
  one,
  open,
  other,
  partition,
  post,
  used,
  userTicket,
} from './post_world.js';
import { base, keys, seeds, user } from './world.js';

const react = (
  what: string,
  more: Partial<Case> & Pick<Case, 'answer'>,
  { change = 'set', emoji = heart, ...args }: Record<string, string> = {},
): Case => ({
  ...{ script: 'posts/react', what, keys: at },
  args: {
    token: 'T',
    reaction: pack([`${post}`, `${partition}`, '12', change, emoji, `${user}`]),
    external,
    known: '-',
    ...args,
  },
  ...more,
});
const written = ['journal', 'meta', `post:${post}`];

export const reactionCases: readonly Case[] = [
  react('the first reaction of all', {
    seeds: [open, chat(), fresh],
    answer: ['ok', 1, Buffer.from(heart).toString('latin1')],
    changes: [...written, `acted:${post}:0`],
    after: async (client) => {
      const { gt, ...fields } = await client.hgetall(key);
      expect(fields).toMatchObject({ u: '1', [`n:${heart}`]: '1', v: String(base + 2) });
      expect(gt).toBeTypeOf('string');
      expect(await client.hgetBuffer(key, `l:${heart}`)).toEqual(external);
      expect(await client.hgetall(actedKey(0))).toEqual({ [user]: heart, n: '1', v: String(base + 1) });
      const entries = await client.xrange(keys.journal(partition), '-', '+');
      expect(entries.map(([, fields]) => fields[1]?.split(':')[0])).toEqual(['react', 'tally']);
    },
  }),
  react('bots are to be told in a second, and what is due already stays', {
    seeds: [open, chat({ b: '8' }), fresh, dueAt(Date.now() + 3_600_000, '1001')],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:0`, 'counts_due'],
    after: async (client) => {
      const due = Number(await client.zscore(keys.countsDue(partition), `${post}`));
      expect(Math.abs(due - Date.now() - limits.counts_interval_ms_min)).toBeLessThan(900);
    },
  }),
  react('a post that is due already is due no later', {
    seeds: [open, chat({ b: '8' }), fresh, dueAt(5)],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:0`],
  }),
  react('what is set already changes nothing', {
    seeds: [open, chat(), used, seeds.hash(actedKey(5), { [user]: heart, n: 1, v: base })],
    answer: ['ok', 0],
  }),
  {
    ...react('under an idempotency key it is remembered', {
      seeds: [open, chat(), fresh],
      answer: ['ok', 1],
      changes: [...written, `acted:${post}:0`, 'req:once.s.1'],
    }),
    keys: { ...at, request: onceKey },
  },
  {
    ...react('under an idempotency key, set already', {
      seeds: [open, chat(), used, seeds.hash(actedKey(5), { [user]: heart, n: 1, v: base })],
      answer: ['ok', 0],
      changes: ['req:once.s.1'],
    }),
    keys: { ...at, request: onceKey },
  },
  {
    ...react('a request of an idempotency key that was applied, and taken back since', {
      seeds: [open, chat(), fresh, seeds.text(onceKey, `${channel.id} 7`)],
      answer: ['ok', 0, ''],
      changes: [],
    }),
    keys: { ...at, request: onceKey },
  },
  react('the latest reactors make room, and the oldest of all are let go', {
    seeds: [open, chat(), crowded],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:0`],
    after: async (client) => {
      const kept = [external, latest, older].map((list) => list.toString('hex')).join('');
      const [l, o] = await client.hmgetBuffer(key, `l:${heart}`, `o:${heart}`);
      expect(l?.length).toBe(0);
      expect(o?.toString('hex')).toBe(kept.slice(0, limits.reactors_kept_max * 32));
    },
  }),
  react(
    'one of those before the latest takes it back',
    {
      seeds: [
        ...[
          open,
          chat(),
          seeds.hash(key, { c: `${channel.id}`, m: 7, v: base, u: 3, gt: Date.now(), ...many }),
        ],
        seeds.hash(key, { [`l:${heart}`]: other, [`o:${heart}`]: Buffer.concat([other, external]) }),
        seeds.hash(actedKey(0), { [user]: heart, n: 3, v: base }),
      ],
      answer: ['ok', 1, ''],
      changes: [...written, `acted:${post}:0`],
      after: async (client) => {
        const fields = [`n:${heart}`, `l:${heart}`, `o:${heart}`] as const;
        expect((await client.hmgetBuffer(key, ...fields)).map(String)).toEqual([
          '159',
          ...[other, other].map(String),
        ]);
      },
    },
    { change: 'remove' },
  ),
  react(
    'an absent one is not removed',
    { seeds: [open, chat(), fresh], answer: ['ok', 0, ''] },
    { change: 'remove' },
  ),
  react(
    'all are removed, from a former generation, and the post stays until it is written',
    {
      seeds: [
        open,
        chat(),
        seeds.hash(key, { c: `${channel.id}`, m: 7, v: base, u: 1, g: 5, gp: 4, gt: Date.now(), ...one }),
        seeds.hash(actedKey(4), { [user]: heart, n: 1, v: base }),
      ],
      answer: ['ok', 1, ''],
      changes: [...written, `acted:${post}:4`, `acted:${post}:5`],
      after: async (client) => {
        expect(await client.hgetall(key)).toMatchObject({ u: '0' });
        expect(await client.hexists(key, `n:${heart}`)).toBe(0);
        expect(await client.hgetall(actedKey(5))).toMatchObject({ [user]: '', n: '0' });
        expect(await client.hgetall(actedKey(4))).toEqual({ n: '0', v: String(base) });
      },
    },
    { change: 'clear' },
  ),
  react('an old generation makes room, and its entries stay until they are written', {
    seeds: [
      open,
      chat(),
      seeds.hash(key, {
        c: `${channel.id}`,
        m: 7,
        v: base,
        u: 0,
        g: 5,
        gt: Date.now() - limits.acted_generation_ms - 1,
      }),
    ],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:${base + 1}`],
    after: async (client) => expect(await client.hmget(key, 'g', 'gp')).toEqual([String(base + 1), '5']),
  }),
  react('a generation that is not written yet is not let go', {
    seeds: [
      open,
      chat(),
      seeds.hash(key, {
        ...{ c: `${channel.id}`, m: 7, v: base, u: 0, g: 5, gp: 4 },
        gt: Date.now() - limits.acted_generation_ms - 1,
      }),
      seeds.hash(actedKey(4), { n: 0, v: base }),
    ],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:5`],
  }),
  react(
    'what Postgres has of the user, under its ticket',
    {
      seeds: [open, chat(), used, seeds.text(userTicket, 'T')],
      answer: ['ok', 1],
      changes: [...written, `acted:${post}:5`, `acted:${post}:${user}:ticket`],
      after: async (client) => {
        expect(await client.hget(key, 'u')).toBe('1');
        expect(await client.hget(actedKey(5), String(user))).toBe(`${heart} x`);
      },
    },
    { known: heart, emoji: 'x' },
  ),
  react('only Postgres can tell', { seeds: [open, chat(), used], answer: ['user_missing', 'T'] }),
  react(
    'the ticket has gone',
    { seeds: [open, chat(), used, seeds.text(userTicket, 'U')], answer: ['user_missing', 'U'] },
    { known: '' },
  ),
  react('a member of a private channel', {
    seeds: [open, closed, fresh, member('member')],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:0`],
  }),
  react('one who is none', { seeds: [open, closed, fresh, member('left')], answer: ['not_found'] }),
  react('the membership is cold', {
    seeds: [open, closed, fresh],
    answer: ['member_missing', 'T', `${channel.id}`],
  }),
  react('the channel is cold', { seeds: [open, fresh], answer: ['chat_missing', 'T', `${channel.id}`] }),
  react('the post is cold', { seeds: [open, chat()], answer: ['post_missing', 'T'] }),
  react('the post is deleted', {
    seeds: [open, chat(), seeds.hash(key, { c: `${channel.id}`, m: 7, x: 1, u: 0, v: base })],
    answer: ['not_found'],
  }),
  react('a post in a group is seen by nobody who is not in it', {
    seeds: [open, chat({ t: 'group' }), fresh, member('none')],
    answer: ['not_found'],
  }),
  react(
    'one who is no more takes back what they could not see any more',
    {
      seeds: [open, closed, used, member('left')],
      answer: ['user_missing', 'T'],
    },
    { change: 'erase', emoji: '' },
  ),
  react(
    'all of one who is no more',
    {
      seeds: [open, closed, used, member('left'), seeds.text(userTicket, 'T')],
      answer: ['ok', 1, ''],
      changes: [...written, `acted:${post}:5`, `acted:${post}:${user}:ticket`, 'counts_due'],
      after: async (client) => expect(await client.hmget(key, 'u', `n:${heart}`)).toEqual(['0', null]),
    },
    { change: 'erase', emoji: '', known: heart },
  ),
  react('too many', {
    seeds: [
      open,
      chat(),
      used,
      seeds.hash(actedKey(5), {
        [user]: Array.from({ length: limits.reactions_per_user_max }, (_, i) => `e${i}`).join(' '),
        ...{ n: 1, v: base },
      }),
    ],
    answer: ['too_many'],
  }),
  react('a full journal', { seeds: [...full, chat(), fresh], answer: ['journal_full'] }),
  react('another Redis', { seeds: [open, chat(), fresh], answer: ['stale_run'] }, { run: 'other' }),
];

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
  one,
  open,
  other,
  partition,
  post,
  used,
  userTicket,
} from './post_world.js';
import { base, incarnation, issued, keys, seeds, user } from './world.js';

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
/** The time at which the last seed of the current case ran. */
let began = 0;
const noteTime = async () => {
  began = Date.now();
};
const written = ['journal', 'meta', `post:${post}`, 'req:r'];

export const reactionCases: readonly Case[] = [
  react('stores the first reaction of a post', {
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
  react('schedules counts for bots in one second, and keeps other due posts', {
    seeds: [open, chat({ b: '8' }), fresh, dueAt(Date.now() + 3_600_000, '1001'), noteTime],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:0`, 'counts_due'],
    after: async (client) => {
      const due = Number(await client.zscore(keys.countsDue(partition), `${post}`));
      expect(due - limits.counts_interval_ms_min).toBeGreaterThanOrEqual(began - 1);
      expect(due - limits.counts_interval_ms_min).toBeLessThanOrEqual(Date.now() + 1);
    },
  }),
  react('does not postpone a post that is already due', {
    seeds: [open, chat({ b: '8' }), fresh, dueAt(5)],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:0`],
  }),
  react('records only the request for a reaction that is already set', {
    seeds: [open, chat(), used, seeds.hash(actedKey(5), { [user]: heart, n: 1, v: base })],
    answer: ['ok', 0],
    changes: ['req:r'],
  }),
  react('answers an applied request without restoring a reaction removed since', {
    seeds: [open, chat(), fresh, seeds.text(at.request, `${channel.id} 7`)],
    answer: ['ok', 0, ''],
  }),
  react('moves the latest reactors to the older list and drops the oldest', {
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
    'removes a reaction of an older reactor',
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
    'records only the request when it removes an absent reaction',
    { seeds: [open, chat(), fresh], answer: ['ok', 0, ''], changes: ['req:r'] },
    { change: 'remove' },
  ),
  react(
    'removes all reactions of a former generation, and keeps the post until it is written to Postgres',
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
  react('starts a new generation and keeps the old one until it is written to Postgres', {
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
  react('keeps a generation that is not yet in Postgres', {
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
    'stores the user’s reactions from Postgres with their ticket',
    {
      seeds: [open, chat(), used, seeds.text(userTicket, 'T')],
      answer: ['ok', 1],
      changes: [...written, `acted:${post}:5`, `acted:${post}:${user}:ticket`],
      after: async (client) => {
        expect(await client.hget(key, 'u')).toBe('1');
        expect(await client.hget(actedKey(5), String(user))).toBe(`${heart} x`);
      },
    },
    { known: heart, emoji: 'x', token: issued('T') },
  ),
  react(
    'ignores reactions that were read under a ticket of an earlier incarnation',
    { seeds: [open, chat(), used, seeds.text(userTicket, 'T')], answer: ['user_missing', issued('T')] },
    { known: heart, emoji: 'x', token: issued('T', incarnation - 1) },
  ),
  react('reports a user whose reactions are only in Postgres as missing', {
    seeds: [open, chat(), used],
    answer: ['user_missing', issued('T')],
  }),
  react(
    'reports the user as missing if the ticket has changed',
    { seeds: [open, chat(), used, seeds.text(userTicket, 'U')], answer: ['user_missing', issued('U')] },
    { known: '' },
  ),
  react('accepts a member of a private channel', {
    seeds: [open, closed, fresh, member('member')],
    answer: ['ok', 1],
    changes: [...written, `acted:${post}:0`],
  }),
  react('refuses a former member of a private channel', {
    seeds: [open, closed, fresh, member('left')],
    answer: ['not_found'],
  }),
  react('reports a cold membership as missing', {
    seeds: [open, closed, fresh],
    answer: ['member_missing', issued('T'), `${channel.id}`],
  }),
  react('reports a cold channel as missing', {
    seeds: [open, fresh],
    answer: ['chat_missing', issued('T'), `${channel.id}`],
  }),
  react('reports a cold post as missing', { seeds: [open, chat()], answer: ['post_missing', issued('T')] }),
  react('refuses a deleted post', {
    seeds: [open, chat(), seeds.hash(key, { c: `${channel.id}`, m: 7, x: 1, u: 0, v: base })],
    answer: ['not_found'],
  }),
  react('refuses a post of a group for a user who is not a member', {
    seeds: [open, chat({ t: 'group' }), fresh, member('none')],
    answer: ['not_found'],
  }),
  react(
    'reports the removed user’s reactions as missing, even in a channel they left',
    {
      seeds: [open, closed, used, member('left')],
      answer: ['user_missing', issued('T')],
    },
    { change: 'erase', emoji: '' },
  ),
  react(
    'removes all reactions of a removed user',
    {
      seeds: [open, closed, used, member('left'), seeds.text(userTicket, 'T')],
      answer: ['ok', 1, ''],
      changes: [...written, `acted:${post}:5`, `acted:${post}:${user}:ticket`, 'counts_due'],
      after: async (client) => expect(await client.hmget(key, 'u', `n:${heart}`)).toEqual(['0', null]),
    },
    { change: 'erase', emoji: '', known: heart, token: issued('T') },
  ),
  react('refuses more reactions of one user than allowed', {
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
  react('refuses while the journal is full', { seeds: [...full, chat(), fresh], answer: ['journal_full'] }),
  react(
    'refuses a different run id',
    { seeds: [open, chat(), fresh], answer: ['stale_run'] },
    { run: 'other' },
  ),
];

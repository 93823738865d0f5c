/** Calls of the scripts below chats/, and every status they can end in. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack } from '../../src/store/core/codec.js';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { base, bot, direct, group, incarnation, keys, partitionOf, seeds } from './world.js';

type More = Partial<Case> & Pick<Case, 'answer'>;

const home = partitionOf(direct);

const chatAt = {
  meta: keys.meta(home),
  chat: keys.chat(direct),
  ticket: keys.ticket(keys.chat(direct)),
  channel: keys.chatChannel(direct),
  changes: keys.changes(direct),
};
const [chatName, chatTicket] = [`chat:${chatText(direct)}`, `chat:${chatText(direct)}:ticket`];
const ticket = (token: string) => seeds.text(chatAt.ticket, token, 5_000);
const open = seeds.open(home);
const fill = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'chats/fill', what, keys: chatAt },
  args: {
    token: 'T',
    sequence: pack(['9', `${base + 4}`, `${incarnation}`, '3']),
    profile: 'new',
    profile_version: '5',
    kind: 'direct',
    bots: '1,2',
    ttl_ms: '60000',
    ...args,
  },
  ...more,
});
const groupHome = partitionOf(group);
const who = keys.member(group.id, bot);
const action = (what: string, more: More, args = {}): Case => ({
  script: 'chats/publish_action',
  what,
  keys: {
    ...{ meta: keys.meta(groupHome), chat: keys.chat(group), ticket: keys.ticket(keys.chat(group)) },
    ...{ member: who, member_ticket: keys.ticket(who), channel: keys.chatChannel(group) },
  },
  args: { direct: false, hint: 'h', token: 'T', ...args },
  ...more,
});
const eventAt = {
  ...{ meta: keys.meta(groupHome), journal: keys.journal(groupHome), chat: keys.chat(group) },
  ...{ ticket: keys.ticket(keys.chat(group)), outbox: keys.outbox(groupHome) },
  request: keys.request(groupHome, 'E'),
};
const event = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'chats/post_member_event', what, keys: eventAt },
  args: { chat: chatText(group), event: '31', own: '', record: 'r', from: 'f', token: 'T', ...args },
  ...more,
});
/** What the outbox holds: for which bots, of which kind. */
const heard = (expected: string[][]) => async (client: Redis) => {
  const entries = await client.xrange(eventAt.outbox, '-', '+');
  expect(entries.map(([, f]) => [f[1], f[3]])).toEqual(expected);
};
const refreshArgs = { profile: 'new', profile_version: '5', kind: 'direct', bots: '' };
const groupOpen = [seeds.open(groupHome), seeds.chat(group)];
const changesAt = {
  meta: keys.meta(home),
  changes: keys.changesRoot(home),
  chat: keys.chatRoot(home),
  message: keys.messageRoot(home),
};
const logName = `changes:${chatText(direct)}`;
const logged =
  (version: number, before: number, kind = 'n') =>
  (client: Redis) =>
    client.xadd(keys.changes(direct), `${version}-0`, 'p', before, 'k', kind, 'm', '7', 'u', '', 'x', '');
const row = (kind: string, version: number, bytes: string) =>
  expect.toSatisfy((rows) => {
    const [first] = rows as Buffer[][];
    return rows.length === 1 && `${first?.[1]} ${first?.[3]} ${first?.[6]}` === `${kind} ${version} ${bytes}`;
  });

const activityAt = { meta: keys.meta(home), chat: keys.chatRoot(home), message: keys.messageRoot(home) };
const activity = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'chats/read_activity', what, keys: activityAt },
  args: { chats: [chatText(direct), 'cold', 'empty', 'long', 'evicted'], ...args },
  ...more,
});

export const chatCases: Case[] = [
  activity('of chats that are hot, cold, empty, and hot without their newest message', {
    seeds: [
      open,
      seeds.chat(direct),
      seeds.text(keys.message(direct, 7), 'seven'),
      seeds.hash(`${activityAt.chat}empty`, { s: '0' }),
      seeds.hash(`${activityAt.chat}long`, { s: '3' }),
      seeds.text(`${activityAt.message}long:3`, 'x'.repeat(limits.message_head_bytes_max + 1)),
      seeds.hash(`${activityAt.chat}evicted`, { s: '4' }),
    ],
    answer: [
      'ok',
      [
        Buffer.from('seven'),
        null,
        Buffer.alloc(0),
        Buffer.from('x'.repeat(limits.message_head_bytes_max)),
        null,
      ],
    ],
    changes: [],
  }),
  activity('in another run', { seeds: [open], answer: ['stale_run'] }, { run: 'other' }),
  fill('an absent chat', {
    seeds: [open, ticket('T')],
    answer: ['ok', 1],
    changes: [chatName, chatTicket],
    async after(client) {
      expect(await client.hgetall(chatAt.chat)).toEqual({
        s: '9',
        i: '95',
        v: `${base + 4}`,
        c: `${base + 4}`,
        p: 'new',
        pv: '5',
        t: 'direct',
        pin: '3',
        b: '1,2',
        pi: '95',
      });
      expect(await client.pttl(chatAt.chat)).toBeGreaterThan(50_000);
    },
  }),
  fill(
    'a chat without messages begins its log',
    { seeds: [open, ticket('T')], answer: ['ok', 1], changes: [chatName, chatTicket, logName] },
    { sequence: pack(['0', `${base + 4}`, `${incarnation}`, '0']) },
  ),
  fill(
    'a chat without messages leaves a log that streams keep as it is',
    {
      seeds: [
        ...[open, ticket('T'), seeds.log(direct)],
        (client) => client.pexpire(chatAt.changes, limits.changes_log_ttl_ms),
      ],
      answer: ['ok', 1],
      changes: [chatName, chatTicket],
      async after(client) {
        expect(await client.pttl(chatAt.changes)).toBeGreaterThan(limits.changes_log_new_ttl_ms);
      },
    },
    { sequence: pack(['0', `${base + 4}`, `${incarnation}`, '0']) },
  ),
  fill('copies of an older incarnation: the sequence and the missing deadline stay', {
    seeds: [open, ticket('T'), seeds.chat(direct, { pi: 94, s: 12, v: base + 6 })],
    answer: ['ok', 1],
    changes: [chatName, chatTicket],
    async after(client) {
      expect(await client.hgetall(chatAt.chat)).toMatchObject({
        s: '12',
        v: `${base + 6}`,
        p: 'new',
        b: '1,2',
        pi: '95',
      });
      expect(await client.pttl(chatAt.chat)).toBe(-1);
    },
  }),
  fill('where a chat is', { seeds: [open, ticket('T'), seeds.chat(direct)], answer: ['ok', 0], changes: [] }),
  fill('without a ticket', { seeds: [open], answer: ['ok', 0], changes: [] }),
  fill("under another's ticket", { seeds: [open, ticket('U')], answer: ['ok', 0], changes: [] }),
  fill('another run', { seeds: [open, ticket('T')], answer: ['stale_run'] }, { run: 'other' }),
  {
    script: 'chats/miss',
    what: 'a hot chat',
    keys: chatAt,
    args: { token: 'T' },
    seeds: [open, seeds.chat(direct)],
    answer: ['ok', 7],
    changes: [],
  },
  {
    script: 'chats/miss',
    what: 'a cold chat',
    keys: chatAt,
    args: { token: 'T' },
    seeds: [open],
    answer: ['missing', 'T'],
  },
  {
    script: 'chats/miss',
    what: 'older copies',
    keys: chatAt,
    args: { token: 'T' },
    seeds: [open, seeds.chat(direct, { pi: 94 })],
    answer: ['missing', 'T'],
  },
  {
    script: 'chats/miss',
    what: 'another run',
    keys: chatAt,
    args: { token: 'T', run: 'other' },
    seeds: [open],
    answer: ['stale_run'],
  },
  {
    script: 'chats/refresh',
    what: 'an older copy',
    keys: chatAt,
    args: refreshArgs,
    seeds: [seeds.chat(direct), ticket('T')],
    answer: ['ok', 1],
    changes: [chatName, chatTicket],
  },
  {
    script: 'chats/refresh',
    what: 'a newer copy',
    keys: chatAt,
    args: refreshArgs,
    seeds: [seeds.chat(direct, { pv: 6 })],
    answer: ['ok', 0],
    changes: [],
  },
  {
    script: 'chats/refresh',
    what: 'no copy: fills under way are refused',
    keys: chatAt,
    args: refreshArgs,
    seeds: [ticket('T')],
    answer: ['ok', 0],
    changes: [chatTicket],
  },
  action('a member', { seeds: [...groupOpen, seeds.member(bot, 'member')], answer: ['ok'], changes: [] }),
  action('in a direct chat', { seeds: groupOpen, answer: ['ok'], changes: [] }, { direct: true }),
  action('another run', { seeds: groupOpen, answer: ['stale_run'] }, { run: 'other' }),
  action('a cold chat', { seeds: [seeds.open(groupHome)], answer: ['chat_missing', 'T'] }),
  action('a cold member', { seeds: groupOpen, answer: ['member_missing', 'T'] }),
  action('who left', { seeds: [...groupOpen, seeds.member(bot, 'left')], answer: ['not_member', 'group'] }),
  action('of a bot whom the user blocked', {
    seeds: [seeds.open(groupHome), seeds.chat(group, { t: 'blocked' })],
    answer: ['blocked'],
  }),
  event('of a person', {
    seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7,8' })],
    answer: ['ok', 1],
    changes: ['meta', 'outbox', 'req:E'],
    after: heard([['7,8', 'chat_member']]),
  }),
  event(
    'of a bot: it hears of itself, the others of it',
    {
      seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7,8' })],
      answer: ['ok', 1],
      changes: ['meta', 'outbox', 'req:E'],
      after: heard([
        ['7', 'my_chat_member'],
        ['8', 'chat_member'],
      ]),
    },
    { own: '7' },
  ),
  event('where no bot is', {
    seeds: [seeds.open(groupHome), seeds.chat(group)],
    answer: ['ok', 0],
    changes: ['meta', 'req:E'],
  }),
  event('that was posted', {
    seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7' }), seeds.text(eventAt.request, '1')],
    answer: ['ok', 0],
    changes: [],
  }),
  event('another run', { seeds: groupOpen, answer: ['stale_run'] }, { run: 'other' }),
  event('a cold chat', { seeds: [seeds.open(groupHome)], answer: ['chat_missing', 'T'] }),
  event('a full journal', {
    seeds: [seeds.open(groupHome, { hw: 0 }), seeds.chat(group)],
    answer: ['journal_full'],
  }),
  event('a full outbox', {
    seeds: [...groupOpen, seeds.stream(eventAt.outbox, limits.outbox_length_max)],
    answer: ['outbox_full'],
  }),
  {
    ...{
      script: 'chats/read_changes',
      what: 'where to begin',
      keys: changesAt,
      args: { after: '0', keep: '0', chats: [chatText(direct)] },
    },
    ...{ seeds: [open, seeds.chat(direct)], answer: ['ok', `${base}`, []], changes: [] },
  },
  {
    ...{
      script: 'chats/read_changes',
      what: 'what came since',
      keys: changesAt,
      args: { after: `${base + 1}`, keep: '0', chats: [chatText(direct)] },
    },
    ...{
      seeds: [
        open,
        seeds.chat(direct, { c: base + 2 }),
        logged(base + 1, base),
        logged(base + 2, base + 1),
        seeds.text(keys.message(direct, 7), 'r'),
      ],
    },
    ...{ answer: ['ok', `${base}`, row('n', base + 2, 'r')], changes: [] },
  },
  {
    ...{
      script: 'chats/read_changes',
      what: 'a log that does not reach back',
      keys: changesAt,
      args: { after: `${base}`, keep: '0', chats: [chatText(direct)] },
    },
    ...{
      seeds: [open, seeds.chat(direct, { c: base + 2 }), logged(base + 2, base + 1)],
      answer: ['ok', `${base}`, row('gap', base, '')],
      changes: [logName],
    },
  },
  {
    ...{
      script: 'chats/read_changes',
      what: 'a log that had an end and was begun anew',
      keys: changesAt,
      args: { after: `${base}`, keep: '0', chats: [chatText(direct)] },
    },
    ...{
      seeds: [
        open,
        seeds.chat(direct, { c: base + 3 }),
        logged(base + 1, base),
        logged(base + 3, base + 2),
        seeds.text(keys.message(direct, 7), 'r'),
      ],
      answer: ['ok', `${base}`, row('gap', base, '')],
      changes: [logName],
    },
  },
  {
    ...{
      script: 'chats/read_changes',
      what: 'a log begins where somebody looks',
      keys: changesAt,
      args: { after: '0', keep: '1', chats: [chatText(direct)] },
    },
    ...{ seeds: [open, seeds.unseen(direct)], answer: ['ok', `${base}`, []], changes: [logName] },
  },
];

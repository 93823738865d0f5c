import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageKinds, pack, packMessageTail } from '../../src/store/core/codec.js';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { base, bot, direct, group, incarnation, issued, keys, partitionOf, seeds } from './world.js';

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
    token: issued('T'),
    sequence: pack(['9', `${base + 4}`, `${incarnation}`, '3', '', '6,4']),
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
  args: { direct: false, announced: '', hint: 'h', token: 'T', ...args },
  ...more,
});
const doing = (what: string, more: More, args = {}): Case =>
  action(what, more, { announced: 'voice', ...args });
const draftAt = { ...chatAt, draft: keys.draft(direct) };
const draftName = `draft:${chatText(direct)}`;
const aDraft = (fields: Record<string, string | number> = {}) =>
  seeds.hash(draftAt.draft, { ...{ i: 4, t: Date.now(), s: 7, f: 's', c: 'C', x: '' }, ...fields });
const draft = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'chats/show_draft', what, keys: draftAt },
  args: { id: '4', flags: 's', content: '{"text":"é"}', token: 'T', ...args },
  ...more,
});
const readDraft = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'chats/read_draft', what, keys: draftAt, args },
  ...more,
});
const eventAt = {
  ...{ meta: keys.meta(groupHome), journal: keys.journal(groupHome), chat: keys.chat(group) },
  ...{ ticket: keys.ticket(keys.chat(group)), outbox: keys.outbox(groupHome) },
  request: keys.request(groupHome, 'E'),
  ...{ changes: keys.changes(group), channel: keys.chatChannel(group), message: keys.messages(group) },
};
const event = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'chats/post_member_event', what, keys: eventAt },
  args: {
    chat: chatText(group),
    event: '31',
    bots: pack(['', '']),
    record: 'r',
    linked: '',
    service: '',
    from: 'f',
    token: 'T',
    ...args,
  },
  ...more,
});
const tailOf = (sender: number) =>
  packMessageTail({
    ...{ sender, kind: messageKinds.service, flags: 0, content: {}, markup: null },
    origin: { service: { delete_chat_photo: true } },
  });
const serviceTail = tailOf(1);
const posted = [
  ...['meta', 'outbox', 'req:E', 'journal', `changes:${chatText(group)}`],
  ...[`chat:${chatText(group)}`, `msg:${chatText(group)}:8`],
];
/**
 * Expects exactly these updates in the outbox. Each item contains the bots and the kind of an update. If an item has a
 * third value, the record of the update must equal this value.
 */
const received = (expected: string[][]) => async (client: Redis) => {
  const entries = await client.xrange(eventAt.outbox, '-', '+');
  expect(entries.map(([, f], i) => [f[1], f[3], f[11]].slice(0, expected[i]?.length))).toEqual(expected);
};
const refreshArgs = {
  profile: 'new',
  profile_version: '5',
  kind: 'direct',
  bots: '',
  permissions: 'can_send_polls',
};
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
  activity('reads chats that are hot, cold, empty, and hot without their newest message', {
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
        [Buffer.from('7'), Buffer.from('seven')],
        null,
        [Buffer.from('0'), Buffer.alloc(0)],
        [Buffer.from('3'), Buffer.from('x'.repeat(limits.message_head_bytes_max))],
        [Buffer.from('4'), null],
      ],
    ],
    changes: [],
  }),
  activity('refuses a different run id', { seeds: [open], answer: ['stale_run'] }, { run: 'other' }),
  fill('fills an absent chat', {
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
        kb: '6,4',
        b: '1,2',
        d: '',
        pi: '95',
      });
      expect(await client.pttl(chatAt.chat)).toBeGreaterThan(50_000);
    },
  }),
  fill(
    'starts the log of a chat without messages',
    { seeds: [open, ticket('T')], answer: ['ok', 1], changes: [chatName, chatTicket, logName] },
    { sequence: pack(['0', `${base + 4}`, `${incarnation}`, '0', '', '']) },
  ),
  fill(
    'keeps the log of a chat without messages if streams use it',
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
    { sequence: pack(['0', `${base + 4}`, `${incarnation}`, '0', '', '']) },
  ),
  fill('replaces copies of an older incarnation, and keeps the sequence and the missing time to live', {
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
  fill('does not overwrite a chat that is present', {
    seeds: [open, ticket('T'), seeds.chat(direct)],
    answer: ['ok', 0],
    changes: [],
  }),
  fill('fills nothing without a ticket', { seeds: [open], answer: ['ok', 0], changes: [] }),
  fill('stores nothing under the ticket of another call', {
    seeds: [open, ticket('U')],
    answer: ['ok', 0],
    changes: [],
  }),
  fill(
    'stores nothing under a ticket of an earlier incarnation',
    { seeds: [open, ticket('T')], answer: ['ok', 0], changes: [] },
    { token: issued('T', incarnation - 1) },
  ),
  fill('refuses a different run id', { seeds: [open, ticket('T')], answer: ['stale_run'] }, { run: 'other' }),
  {
    script: 'chats/miss',
    what: 'reports nothing missing for a hot chat',
    keys: chatAt,
    args: { token: 'T' },
    seeds: [open, seeds.chat(direct, { kb: '6,4' })],
    answer: ['ok', 7, expect.anything(), expect.anything(), 'direct', '0', '6,4'],
    changes: [],
  },
  {
    script: 'chats/miss',
    what: 'reports a cold chat as missing',
    keys: chatAt,
    args: { token: 'T' },
    seeds: [open],
    answer: ['missing', issued('T')],
  },
  {
    script: 'chats/miss',
    what: 'reports copies of an older incarnation as missing',
    keys: chatAt,
    args: { token: 'T' },
    seeds: [open, seeds.chat(direct, { pi: 94 })],
    answer: ['missing', issued('T')],
  },
  {
    script: 'chats/miss',
    what: 'refuses a different run id',
    keys: chatAt,
    args: { token: 'T', run: 'other' },
    seeds: [open],
    answer: ['stale_run'],
  },
  {
    script: 'chats/refresh',
    what: 'replaces an older copy',
    keys: chatAt,
    args: refreshArgs,
    seeds: [seeds.chat(direct), ticket('T')],
    answer: ['ok', 1],
    changes: [chatName, chatTicket],
  },
  {
    script: 'chats/refresh',
    what: 'keeps a newer copy',
    keys: chatAt,
    args: refreshArgs,
    seeds: [seeds.chat(direct, { pv: 6 })],
    answer: ['ok', 0],
    changes: [],
  },
  {
    script: 'chats/refresh',
    what: 'invalidates fills in flight if there is no copy',
    keys: chatAt,
    args: refreshArgs,
    seeds: [ticket('T')],
    answer: ['ok', 0],
    changes: [chatTicket],
  },
  action('accepts a member', {
    seeds: [...groupOpen, seeds.member(bot, 'member')],
    answer: ['ok'],
    changes: [],
  }),
  action(
    'accepts a bot in a direct chat',
    { seeds: groupOpen, answer: ['ok'], changes: [] },
    { direct: true },
  ),
  action('refuses a different run id', { seeds: groupOpen, answer: ['stale_run'] }, { run: 'other' }),
  action('reports a cold chat as missing', {
    seeds: [seeds.open(groupHome)],
    answer: ['chat_missing', issued('T')],
  }),
  action('reports a cold member as missing', { seeds: groupOpen, answer: ['member_missing', issued('T')] }),
  action('refuses a former member', {
    seeds: [...groupOpen, seeds.member(bot, 'left')],
    answer: ['not_member', 'group'],
  }),
  action('refuses a bot that the user blocked', {
    seeds: [seeds.open(groupHome), seeds.chat(group, { t: 'blocked' })],
    answer: ['blocked'],
  }),
  doing('accepts a person', {
    seeds: [...groupOpen, seeds.member(bot, 'member')],
    answer: ['ok'],
    changes: [],
  }),
  doing('shows nothing in a channel', {
    seeds: [seeds.open(groupHome), seeds.chat(group, { t: 'channel' }), seeds.member(bot, 'administrator')],
    answer: ['ok'],
    changes: [],
  }),
  doing('refuses a person in a closed chat', {
    seeds: [seeds.open(groupHome), seeds.chat(group, { t: 'closed' }), seeds.member(bot, 'member')],
    answer: ['chat_closed'],
  }),
  doing('refuses an action that announces a forbidden message', {
    seeds: [...groupOpen, seeds.member(bot, 'restricted', { can_send_photos: true })],
    answer: ['not_permitted', 'voice'],
  }),
  draft('shows and stores a new draft', {
    seeds: [open, seeds.unseen(direct)],
    answer: ['ok'],
    changes: [draftName],
    async after(client) {
      const stored = { i: '4', s: '7', f: 's', c: '{"text":"é"}', x: '', t: expect.any(String) };
      expect(await client.hgetall(draftAt.draft)).toEqual(stored);
      const left = await client.pttl(draftAt.draft);
      expect(left).toBeGreaterThan(limits.draft_ttl_ms - 5_000);
      expect(left).toBeLessThanOrEqual(limits.draft_ttl_ms);
    },
  }),
  draft('does not store a draft again within a second', {
    seeds: [open, seeds.unseen(direct), aDraft({ t: Date.now() + 60_000 })],
    answer: ['ok'],
    changes: [],
  }),
  draft('stores a draft again after a second', {
    seeds: [open, seeds.unseen(direct), aDraft({ t: Date.now() - limits.draft_store_interval_ms - 1 })],
    answer: ['ok'],
    changes: [draftName],
  }),
  draft(
    'stores another draft at once',
    { seeds: [open, seeds.unseen(direct), aDraft({ x: 1 })], answer: ['ok'], changes: [draftName] },
    { id: '5' },
  ),
  draft('keeps the mark of a stopped draft and not the new text', {
    seeds: [open, seeds.unseen(direct), aDraft({ t: 1, c: '', x: 1 })],
    answer: ['ok'],
    changes: [draftName],
    async after(client) {
      expect(await client.hmget(draftAt.draft, 'x', 'c')).toEqual(['1', '']);
      expect(await client.pttl(draftAt.draft)).toBeGreaterThan(limits.draft_ttl_ms - 5_000);
    },
  }),
  draft(
    'refuses a different run id',
    { seeds: [open, seeds.unseen(direct)], answer: ['stale_run'] },
    { run: 'other' },
  ),
  draft('leaves a ticket if the chat is missing', {
    seeds: [open],
    answer: ['chat_missing', issued('T')],
    changes: [chatTicket],
  }),
  draft('refuses a bot that the user blocked', {
    seeds: [open, seeds.unseen(direct, { t: 'blocked' })],
    answer: ['blocked'],
  }),
  readDraft('returns the draft', { seeds: [open, aDraft()], answer: ['ok', '4', '7', 's', 0, 'C'] }),
  readDraft('returns nothing without a draft', { seeds: [open], answer: ['ok', null, null, null, 0, null] }),
  readDraft(
    'refuses a different run id',
    { seeds: [open, aDraft()], answer: ['stale_run'] },
    { run: 'other' },
  ),
  event('posts a membership event of a person to the bots', {
    seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7,8' })],
    answer: ['ok', 1],
    changes: ['meta', 'outbox', 'req:E'],
    after: received([['7,8', 'chat_member']]),
  }),
  event(
    'posts a membership event of a bot to itself and to other bots',
    {
      seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7,8' })],
      answer: ['ok', 1],
      changes: ['meta', 'outbox', 'req:E'],
      after: received([
        ['7', 'my_chat_member'],
        ['8', 'chat_member'],
      ]),
    },
    { bots: pack(['7', '']) },
  ),
  event(
    'posts a join request only to the bots that may decide on it',
    {
      seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7,8' })],
      answer: ['ok', 1],
      changes: ['meta', 'outbox', 'req:E'],
      after: received([['8', 'chat_join_request']]),
    },
    { bots: pack(['', '8']), record: '', linked: 'l' },
  ),
  event(
    'shows the link of a join only to the bots that may see it',
    {
      seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7,8,9' })],
      answer: ['ok', 1],
      changes: ['meta', 'outbox', 'req:E'],
      after: received([
        ['8,9', 'chat_member', 'l'],
        ['7', 'chat_member', 'r'],
      ]),
    },
    { bots: pack(['', '8,9,10']), linked: 'l' },
  ),
  event('posts nothing if the chat has no bots', {
    seeds: [seeds.open(groupHome), seeds.chat(group)],
    answer: ['ok', 0],
    changes: ['meta', 'req:E'],
  }),
  event(
    'adds a service message and sends it to the bots, before the update about the member',
    {
      seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7,8' })],
      answer: ['ok', 1],
      changes: posted,
      after: received([
        ['7,8', 'message'],
        ['7,8', 'chat_member'],
      ]),
    },
    { service: serviceTail },
  ),
  event(
    'adds a service message from a bot that only this bot receives',
    {
      seeds: [seeds.open(groupHome), seeds.chat(group, { b: `${bot},8` })],
      answer: ['ok', 1],
      changes: posted,
      after: received([[`${bot}`, 'message']]),
    },
    { service: tailOf(bot), record: '' },
  ),
  event('does not post an event twice', {
    seeds: [seeds.open(groupHome), seeds.chat(group, { b: '7' }), seeds.text(eventAt.request, '1')],
    answer: ['ok', 0],
    changes: [],
  }),
  event('refuses a different run id', { seeds: groupOpen, answer: ['stale_run'] }, { run: 'other' }),
  event('reports a cold chat as missing', {
    seeds: [seeds.open(groupHome)],
    answer: ['chat_missing', issued('T')],
  }),
  event('refuses while the journal is full', {
    seeds: [seeds.open(groupHome, { hw: 0 }), seeds.chat(group)],
    answer: ['journal_full'],
  }),
  event('refuses while the outbox is full', {
    seeds: [...groupOpen, seeds.stream(eventAt.outbox, limits.outbox_length_max)],
    answer: ['outbox_full'],
  }),
  {
    ...{
      script: 'chats/read_changes',
      what: 'returns the start of the log',
      keys: changesAt,
      args: { after: '0', keep: '0', chats: [chatText(direct)] },
    },
    ...{ seeds: [open, seeds.chat(direct)], answer: ['ok', `${base}`, []], changes: [] },
  },
  {
    ...{
      script: 'chats/read_changes',
      what: 'returns the changes since a version',
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
      what: 'reports a gap if the log does not reach back',
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
      what: 'reports a gap if the log expired and was started again',
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
      what: 'starts a log at the first read',
      keys: changesAt,
      args: { after: '0', keep: '1', chats: [chatText(direct)] },
    },
    ...{ seeds: [open, seeds.unseen(direct)], answer: ['ok', `${base}`, []], changes: [logName] },
  },
  {
    script: 'chats/tell_person',
    what: 'publishes a hint and stores nothing',
    keys: { channel: keys.userChannel(5) },
    args: { hint: 'read 1 2' },
    answer: ['ok'],
  },
];

/** Calls of the scripts below auth/, chats/, control/, journal/ and partition/, and every status they can end in. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack, unpack } from '../../src/store/codec.js';
import { chatText } from '../../src/store/keys.js';
import type { Case } from './cases.js';
import { base, bot, direct, group, incarnation, keys, partitionOf, record, run, seeds } from './world.js';

type More = Partial<Case> & Pick<Case, 'answer'>;
const home = partitionOf(direct);

const auth = {
  meta: keys.meta(0),
  nodes: keys.authNodes(),
  revoked: keys.authRevoked(),
  channel: keys.authChannel(),
};
const known = seeds.open(0);
const nodes = (fields = {}) => seeds.hash(auth.nodes, { incarnation, epoch: 2, ...fields });
const log = seeds.stream(auth.revoked, 2);
const renew = (what: string, { seeds: more = [], ...rest }: More, args = {}): Case => ({
  ...{ script: 'auth/renew', what, keys: auth },
  args: { node: 'n', known: String(incarnation), acked: '2', lease_ms: '1000', ...args },
  seeds: [known, ...more],
  ...rest,
});
const pending = (what: string, fields: object, count: number, changes: string[] = []): Case => ({
  ...{
    script: 'auth/pending',
    what,
    keys: auth,
    args: { epoch: '2' },
    seeds: [nodes(fields)],
    answer: ['ok', count],
    changes,
  },
});
const soon = Date.now() + 60_000;
const everything = [Buffer.from('*')];

const authCases: Case[] = [
  renew('nothing new', {
    seeds: [nodes(), log],
    answer: ['ok', incarnation, 2, []],
    changes: ['auth_nodes'],
  }),
  renew(
    'one revoked since',
    { seeds: [nodes(), log], answer: ['ok', incarnation, 2, [Buffer.from('x')]], changes: ['auth_nodes'] },
    { acked: '1' },
  ),
  renew(
    'a log that does not reach back',
    { seeds: [nodes()], answer: ['ok', incarnation, 2, everything], changes: ['auth_nodes'] },
    { acked: '1' },
  ),
  renew(
    'an acknowledgement of what was lost',
    {
      seeds: [nodes()],
      answer: ['ok', incarnation, 2, everything],
      changes: ['auth_nodes'],
      after: async (client) => expect(await client.hget(auth.nodes, 'n')).toMatch(/^0 /),
    },
    { acked: '3' },
  ),
  renew(
    'another incarnation, though the epochs agree',
    { seeds: [nodes()], answer: ['ok', incarnation, 2, everything], changes: ['auth_nodes'] },
    { known: String(incarnation - 1) },
  ),
  renew(
    'the first of a new incarnation',
    {
      seeds: [nodes({ incarnation: incarnation - 1 }), log],
      answer: ['ok', incarnation, 2, everything],
      changes: ['auth_nodes', 'auth_revoked'],
    },
    { known: String(incarnation - 1) },
  ),
  renew(
    'an empty Redis',
    { answer: ['ok', incarnation, 0, everything], changes: ['auth_nodes'] },
    { known: '0' },
  ),
  {
    ...{ script: 'auth/renew', what: 'a Redis that is not known yet', keys: auth },
    args: { node: 'n', known: '0', acked: '0', lease_ms: '1000' },
    answer: ['stale_run'],
  },
  {
    ...{ script: 'auth/revoke', what: 'a Redis that is not known yet', keys: auth },
    args: { subject: 'bot:1' },
    answer: ['stale_run'],
  },
  {
    ...{
      script: 'auth/revoke',
      what: 'raises the epoch',
      keys: auth,
      args: { subject: 'bot:1' },
    },
    ...{
      seeds: [known, nodes(), log],
      answer: ['ok', incarnation, 3],
      changes: ['auth_nodes', 'auth_revoked'],
    },
  },
  {
    ...{
      script: 'auth/revoke',
      what: 'the first of a new incarnation',
      keys: auth,
      args: { subject: 'bot:1' },
    },
    ...{
      seeds: [known, nodes({ incarnation: incarnation - 1 }), log],
      answer: ['ok', incarnation, 3],
      changes: ['auth_nodes', 'auth_revoked'],
    },
    after: async (client) => expect(await client.xlen(auth.revoked)).toBe(1),
  },
  pending('one has not acknowledged', { a: `2 ${soon}`, b: `1 ${soon}` }, 1),
  pending('a lease that ended still counts', { b: `1 ${Date.now() - 1_000}` }, 1),
  pending(
    'who is long gone is forgotten',
    { b: `1 ${Date.now() - limits.auth_node_age_ms_max - 5_000}` },
    0,
    ['auth_nodes'],
  ),
  {
    script: 'auth/leave',
    what: 'a node',
    keys: auth,
    args: { node: 'a' },
    seeds: [nodes({ a: `2 ${soon}` })],
    answer: ['ok'],
    changes: ['auth_nodes'],
  },
];

const chatAt = {
  meta: keys.meta(home),
  chat: keys.chat(direct),
  ticket: keys.ticket(keys.chat(direct)),
  channel: keys.chatChannel(direct),
};
const [chatName, chatTicket] = [`chat:${chatText(direct)}`, `chat:${chatText(direct)}:ticket`];
const ticket = (token: string) => seeds.text(chatAt.ticket, token, 5_000);
const open = seeds.open(home);
const fill = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'chats/fill', what, keys: chatAt },
  args: {
    token: 'T',
    sequence: pack(['9', `${base + 4}`, `${incarnation}`]),
    profile: 'new',
    profile_version: '5',
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
const refreshArgs = { profile: 'new', profile_version: '5', bots: '' };
const groupOpen = [seeds.open(groupHome), seeds.chat(group)];
const changesAt = {
  meta: keys.meta(home),
  changes: keys.changesRoot(home),
  chat: keys.chatRoot(home),
  message: keys.messageRoot(home),
};
const logged =
  (version: number, before: number, kind = 'n') =>
  (client: Redis) =>
    client.xadd(keys.changes(direct), `${version}-0`, 'p', before, 'k', kind, 'm', '7', 'u', '', 'x', '');
const row = (kind: string, version: number, bytes: string) =>
  expect.toSatisfy((rows) => {
    const [first] = rows as Buffer[][];
    return rows.length === 1 && `${first?.[1]} ${first?.[3]} ${first?.[6]}` === `${kind} ${version} ${bytes}`;
  });

const chatCases: Case[] = [
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
        b: '1,2',
        pi: '95',
      });
      expect(await client.pttl(chatAt.chat)).toBeGreaterThan(50_000);
    },
  }),
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
  action('who left', { seeds: [...groupOpen, seeds.member(bot, 'left')], answer: ['not_member'] }),
  {
    ...{
      script: 'chats/read_changes',
      what: 'where to begin',
      keys: changesAt,
      args: { after: '0', chats: [chatText(direct)] },
    },
    ...{ seeds: [open, seeds.chat(direct)], answer: ['ok', `${base}`, []], changes: [] },
  },
  {
    ...{
      script: 'chats/read_changes',
      what: 'what came since',
      keys: changesAt,
      args: { after: `${base + 1}`, chats: [chatText(direct)] },
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
      args: { after: `${base}`, chats: [chatText(direct)] },
    },
    ...{
      seeds: [open, seeds.chat(direct, { c: base + 2 }), logged(base + 2, base + 1)],
      answer: ['ok', `${base}`, row('gap', base, '')],
      changes: [],
    },
  },
];

const copy = {
  meta: keys.meta(home),
  record: keys.bot(bot),
  ticket: keys.ticket(keys.bot(bot)),
  channel: keys.userChannel(bot),
};
const [copyName, copyTicket] = [`bot:${bot}`, `bot:${bot}:ticket`];
const stored = (version: number, inc = incarnation) =>
  seeds.text(copy.record, pack([version, inc, 'old']), 60_000);
const copyHeld = seeds.text(copy.ticket, 'T', 5_000);
const write = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'control/write', what, keys: copy },
  args: {
    token: 'T',
    refresh: false,
    version: `${2 ** 52}`,
    fields: pack('new'),
    count: '3',
    ttl_ms: '60000',
    ...args,
  },
  ...more,
});
const refresh = { refresh: true };
const controlCases: Case[] = [
  write('a fill under its ticket', {
    seeds: [open, copyHeld],
    answer: ['ok', 1],
    changes: [copyName, copyTicket],
    after: async (client) =>
      expect(unpack((await client.getBuffer(copy.record)) as Buffer)).toEqual([2 ** 52, incarnation, 'new']),
  }),
  write('a fill without a ticket', { seeds: [open], answer: ['ok', 0], changes: [] }),
  write('a fill where a copy is', { seeds: [open, copyHeld, stored(1)], answer: ['ok', 0], changes: [] }),
  write('a fill over a copy of an older incarnation', {
    seeds: [open, copyHeld, stored(1, 94)],
    answer: ['ok', 1],
    changes: [copyName, copyTicket],
  }),
  write(
    'a refresh of an older copy',
    { seeds: [open, stored(1), copyHeld], answer: ['ok', 1], changes: [copyName, copyTicket] },
    { ...refresh, token: '' },
  ),
  write(
    'a refresh of a newer copy',
    { seeds: [open, stored(9), copyHeld], answer: ['ok', 0], changes: [copyTicket] },
    { ...refresh, version: '9' },
  ),
  write(
    'a refresh of an absent copy under its ticket',
    { seeds: [open, copyHeld], answer: ['ok', 1], changes: [copyName, copyTicket] },
    refresh,
  ),
  write(
    'a refresh of an absent copy without a ticket',
    { seeds: [open], answer: ['ok', 0], changes: [] },
    { ...refresh, token: '' },
  ),
  write('another run', { seeds: [open, copyHeld], answer: ['stale_run'] }, { run: 'other' }),
  {
    script: 'control/read',
    what: 'a copy',
    keys: copy,
    args: { token: 'T', ttl_ms: '90000' },
    seeds: [open, stored(1)],
    answer: ['ok', pack([1, incarnation, 'old']).toString('latin1')],
    changes: [],
  },
  {
    script: 'control/read',
    what: 'no copy',
    keys: copy,
    args: { token: 'T', ttl_ms: '90000' },
    seeds: [open],
    answer: ['missing', 'T'],
  },
  {
    script: 'control/read',
    what: 'a copy of an older incarnation',
    keys: copy,
    args: { token: 'T', ttl_ms: '1' },
    seeds: [open, stored(1, 94)],
    answer: ['missing', 'T'],
  },
  {
    script: 'control/read',
    what: 'another run',
    keys: copy,
    args: { token: 'T', ttl_ms: '1', run: 'other' },
    seeds: [open, stored(1)],
    answer: ['stale_run'],
  },
];

const at = {
  meta: keys.meta(home),
  journal: keys.journal(home),
  lease: keys.flushLease(home),
  flushers: keys.flushers(),
};
const beat = (what: string, leaving: boolean, live: string[]): Case => ({
  ...{
    script: 'journal/heartbeat',
    what,
    keys: at,
    args: { id: 'me', stale_ms: '3000', leaving },
    changes: ['flushers'],
  },
  ...{ seeds: [seeds.hash(at.flushers, { me: 1, late: 1, here: soon })] },
  answer: ['ok', expect.toSatisfy((names) => (names as Buffer[]).map(String).sort().join() === live.join())],
});
const holder = (name: string) => seeds.text(at.lease, name, 3_000);
const settle: Case = {
  ...{ script: 'journal/settle', what: 'what did not change since may expire', answer: ['ok', 1, 2] },
  keys: {
    journal: at.journal,
    entities: [
      keys.message(direct, 1),
      keys.message(direct, 2),
      keys.message(direct, 3),
      keys.chat(direct),
      keys.chat({ ...direct, user: 9 }),
    ],
  },
  args: {
    after: '3-0',
    hot_ms: '60000',
    records: '3',
    versions: [`${base}`, `${base}`, `${base}`, `${base}`, `${base}`],
  },
  seeds: [
    seeds.stream(at.journal, 3),
    seeds.text(keys.message(direct, 1), record({ version: base })),
    seeds.text(keys.message(direct, 2), record({ version: base + 1 })),
    seeds.text(keys.message(direct, 3), 'no record'),
    seeds.chat(direct),
    seeds.chat({ ...direct, user: 9 }, { v: base + 1 }),
  ],
  changes: ['journal', `msg:${chatText(direct)}:1`, chatName],
};
const recover = (what: string, more: More, args = {}): Case => ({
  ...{
    script: 'partition/recover',
    what,
    keys: at,
    args: { expected: run, incarnation: '96', high_water: '100', ...args },
  },
  ...more,
});
const before = seeds.open(home, { run: 'before', ver: base + 5 });

const journalCases: Case[] = [
  beat('a flusher lives', false, ['here', 'me']),
  beat('a flusher leaves', true, ['here']),
  {
    script: 'journal/lease',
    what: 'free',
    keys: at,
    args: { owner: 'me', ms: '3000' },
    answer: ['ok'],
    changes: ['flush_lease'],
  },
  {
    script: 'journal/lease',
    what: 'its own',
    keys: at,
    args: { owner: 'me', ms: '3000' },
    seeds: [holder('me')],
    answer: ['ok'],
    changes: [],
  },
  {
    script: 'journal/lease',
    what: 'held',
    keys: at,
    args: { owner: 'me', ms: '3000' },
    seeds: [holder('you')],
    answer: ['taken'],
  },
  {
    script: 'journal/release',
    what: 'its own',
    keys: at,
    args: { owner: 'me' },
    seeds: [holder('me')],
    answer: ['ok'],
    changes: ['flush_lease'],
  },
  {
    script: 'journal/release',
    what: "another's",
    keys: at,
    args: { owner: 'me' },
    seeds: [holder('you')],
    answer: ['ok'],
    changes: [],
  },
  settle,
  {
    script: 'journal/state',
    what: 'a partition',
    keys: at,
    args: {},
    seeds: [open, seeds.stream(at.journal, 2)],
    answer: ['ok', 2, '1', `${base}`, run, '100'],
    changes: [],
  },
  {
    script: 'journal/state',
    what: 'one never opened',
    keys: at,
    args: {},
    answer: ['ok', 0, null, '0', null, '0'],
    changes: [],
  },
  recover('raises', {
    seeds: [before],
    answer: ['ok'],
    changes: ['meta'],
    after: async (client) =>
      expect(await client.hgetall(at.meta)).toEqual({
        run,
        ver: `${96 * limits.versions_per_incarnation}`,
        hw: '100',
      }),
  }),
  recover('is open', { seeds: [open], answer: ['ok'], changes: [] }),
  recover('behind the counter', { seeds: [before], answer: ['behind', 95] }, { incarnation: '95' }),
  recover('behind the last id of the journal', {
    seeds: [(client) => client.xadd(at.journal, `${97 * limits.versions_per_incarnation}-0`, 'k', 'x')],
    answer: ['behind', 97],
  }),
  recover('the connection reaches another Redis', { seeds: [before], answer: ['moved'] }, { run: 'third' }),
];

export const otherCases: Case[] = [...authCases, ...chatCases, ...controlCases, ...journalCases];

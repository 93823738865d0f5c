/** Calls of the scripts below messages/ and every status they can end in. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageFlags, messageKinds, pack, packMessageTail, unpackMessage } from '../../src/store/codec.js';
import { type ChatRef, chatText } from '../../src/store/keys.js';
import type { Case } from './cases.js';
import {
  base,
  bot,
  direct,
  group,
  keyboard,
  keys,
  partitionOf,
  record,
  type Seed,
  seconds,
  seeds,
  user,
} from './world.js';

const id = 7;
const at = (chat: ChatRef) => {
  const partition = partitionOf(chat);
  const member = keys.member(chat.id, user);
  return {
    ...{ meta: keys.meta(partition), journal: keys.journal(partition), outbox: keys.outbox(partition) },
    ...{ chat: keys.chat(chat), ticket: keys.ticket(keys.chat(chat)), request: keys.request(partition, 'r') },
    ...{ changes: keys.changes(chat), channel: keys.chatChannel(chat) },
    ...{ message: keys.message(chat, id), message_ticket: keys.ticket(keys.message(chat, id)) },
    ...{ queue_state: keys.queueState(bot), queue: keys.queue(bot), bot_channel: keys.botChannel(bot) },
    due: keys.webhooksDue(partitionOf(direct)),
    ...{
      member,
      member_ticket: keys.ticket(member),
      sibling: keys.messages(chat),
      post: keys.postRoot(partition),
      acted: keys.actedRoot(partition),
    },
  };
};
const prefixed = (chat: ChatRef) => ({ ...at(chat), message: keys.messages(chat) });
const tail = packMessageTail({
  sender: user,
  kind: 1,
  flags: 0,
  content: { text: 'new' },
  markup: null,
  origin: {},
});
const open = (chat: ChatRef, fields = {}) => seeds.open(partitionOf(chat), fields);
const full = (chat: ChatRef): Seed[] => [
  open(chat, { hw: 1 }),
  seeds.stream(keys.journal(partitionOf(chat)), 1),
];
const old = seconds() - limits.edit_age_ms_max / 1000 - 1;
const deleted = { kind: messageKinds.deleted };
const asGroup = ['chat:-100777', 'changes:-100777', 'journal', 'meta', 'req:r'];
const asDirect = [`chat:${chatText(direct)}`, `changes:${chatText(direct)}`, 'journal', 'meta', 'req:r'];
const inQueue = [`queue:${bot}`, `queue_state:${bot}`];
const member = (status = 'member', rights = {}) => seeds.member(user, status, rights);
const outboxFull = seeds.stream(keys.outbox(partitionOf(group)), limits.outbox_length_max);

const sendDirect = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'messages/send_direct', what, keys: prefixed(direct) },
  args: { chat: chatText(direct), tail, reply_to: '', from: pack({ id: user }), token: 'T', ...args },
  ...more,
});
const ready = [open(direct), seeds.chat(direct), seeds.queue()];

const sendShared = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'messages/send_shared', what, keys: prefixed(group) },
  args: {
    chat: '-100777',
    tail,
    sender: `${user}`,
    reply_to: '',
    from: pack({ id: user }),
    partition: `${partitionOf(group)}`,
    token: 'T',
    ...args,
  },
  ...more,
});
const groupReady = [open(group), seeds.chat(group, { b: `${bot},${user}` }), member()];

const poster = member('administrator', { can_post_messages: true });
const post = 10_001 * limits.partitions_max + partitionOf(group);
const inChannel = [open(group), seeds.chat(group, { t: 'channel', b: `${bot}` })];
const channelSends: Case[] = [
  sendShared('a message of a channel is a post', {
    seeds: [...inChannel, poster],
    answer: ['ok', 8, expect.anything(), expect.anything(), null, 1, `${post}`],
    changes: [...asGroup, 'msg:-100777:8', 'outbox', `post:${post}`],
    async after(client) {
      const stored = unpackMessage((await client.getBuffer(keys.message(group, 8))) as Buffer);
      expect(stored).toMatchObject({ version: base + 1, post, origin: {} });
      expect(await client.hgetall(keys.post(post))).toEqual({
        c: '-100777',
        m: '8',
        v: `${base + 2}`,
        u: '0',
      });
      const journal = await client.xrange(keys.journal(partitionOf(group)), '-', '+');
      const names = journal.map(([, [, name, , , , state]]) => [name, state]);
      expect(names).toEqual([
        ['msg:-100777:8', undefined],
        [`post:${partitionOf(group)}:10001`, keys.post(post)],
      ]);
      const [update] = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      expect(update?.[1].slice(2, 4)).toEqual(['k', 'channel_post']);
    },
  }),
  sendShared('numbers of posts count up within an incarnation', {
    seeds: [...inChannel, seeds.hash(at(group).meta, { post: 41, post_inc: 95 }), poster],
    answer: ['ok', 8],
    changes: [
      ...asGroup,
      'msg:-100777:8',
      'outbox',
      `post:${42 * limits.partitions_max + partitionOf(group)}`,
    ],
  }),
  sendShared('a member of a channel who may not post', {
    seeds: [...inChannel, member('administrator', { can_pin_messages: true })],
    answer: ['not_allowed'],
  }),
];

const sends: Case[] = [
  sendDirect('a user writes', {
    seeds: ready,
    answer: ['ok', 8],
    changes: [...asDirect, `msg:${chatText(direct)}:8`, ...inQueue],
    async after(client) {
      const stored = await client.getBuffer(keys.message(direct, 8));
      expect(unpackMessage(stored as Buffer)).toMatchObject({
        version: base + 1,
        sender: user,
        content: { text: 'new' },
      });
      const [entry] = await client.xrange(keys.journal(partitionOf(direct)), '-', '+');
      // Above 10^14, where plain concatenation would round.
      expect(entry?.[0]).toBe(`${base + 1}-0`);
      expect(entry?.[1].slice(0, 2)).toEqual(['k', `msg:${chatText(direct)}:8`]);
      expect(await client.hget(keys.chat(direct), 'v')).toBe(`${base + 1}`);
      const [update] = await client.xrange(keys.queue(bot), '-', '+');
      expect(update?.[0]).toBe('42-0');
      const size = (update?.[1] ?? []).filter((_, i) => i % 2 === 1);
      const bytes = await client.hget(keys.queueState(bot), 'bytes');
      const raw = (await client.callBuffer('XRANGE', keys.queue(bot), '-', '+')) as [Buffer, Buffer[]][];
      const counted = (raw[0]?.[1] ?? [])
        .filter((_, i) => i % 2 === 1)
        .reduce((sum, part) => sum + part.length, 0);
      expect([size.length, Number(bytes)]).toEqual([9, counted]);
    },
  }),
  sendDirect(
    'a bot writes: its own queue hears nothing',
    {
      seeds: [open(direct), seeds.chat(direct)],
      answer: ['ok', 8],
      changes: [...asDirect, `msg:${chatText(direct)}:8`],
    },
    { from: '' },
  ),
  sendDirect(
    'a bot that the user blocked',
    { seeds: [open(direct), seeds.chat(direct, { t: 'blocked' })], answer: ['blocked'] },
    { from: '' },
  ),
  sendDirect('a user who blocked the bot', {
    seeds: [...ready, seeds.chat(direct, { t: 'blocked' })],
    answer: ['blocked'],
  }),
  sendDirect('the first message of a fresh chat skips nothing', {
    seeds: [open(direct), seeds.chat(direct, { s: 0 }), seeds.queue()],
    answer: ['ok', 1],
    changes: [...asDirect, `msg:${chatText(direct)}:1`, ...inQueue],
  }),
  sendDirect('under a new incarnation both sequences skip', {
    seeds: [open(direct), seeds.chat(direct, { i: 94 }), seeds.queue({ inc: 94 })],
    answer: ['ok', 7 + 10_001],
    changes: [...asDirect, `msg:${chatText(direct)}:10008`, ...inQueue],
    after: async (client) => expect((await client.xrange(keys.queue(bot), '-', '+'))[0]?.[0]).toBe('10042-0'),
  }),
  sendDirect('a kind that the mask leaves out', {
    seeds: [open(direct), seeds.chat(direct), seeds.queue({ mask: 62 })],
    answer: ['ok', 8],
    changes: [...asDirect, `msg:${chatText(direct)}:8`],
  }),
  sendDirect('a full queue buries its oldest', {
    seeds: [...ready, seeds.entry(30), seeds.queue({ bytes: limits.queue_bytes_max })],
    answer: ['ok', 8],
    changes: [...asDirect, `msg:${chatText(direct)}:8`, ...inQueue],
    async after(client) {
      const journal = await client.xrange(keys.journal(partitionOf(direct)), '-', '+');
      expect(journal.map(([, fields]) => fields[1])).toEqual([`msg:${chatText(direct)}:8`, `dead:${bot}:30`]);
      expect((await client.xrange(keys.queue(bot), '-', '+')).map(([name]) => name)).toEqual(['42-0']);
    },
  }),
  sendDirect('a request that was applied', {
    seeds: [...ready, seeds.text(keys.request(partitionOf(direct), 'r'), '6 1700000000')],
    answer: ['ok', '6', '1700000000'],
    changes: [],
  }),
  sendDirect(
    'an answer to a message',
    {
      seeds: [...ready, seeds.message(direct, 5)],
      answer: ['ok', 8],
      changes: [...asDirect, `msg:${chatText(direct)}:8`, ...inQueue],
    },
    { reply_to: '5' },
  ),
  sendDirect(
    'a request that was applied, though what it answers was deleted and the user blocked the bot since',
    {
      seeds: [
        ...ready,
        seeds.chat(direct, { t: 'blocked' }),
        seeds.message(direct, 5, deleted),
        seeds.text(keys.request(partitionOf(direct), 'r'), '6 1700000000'),
      ],
      answer: ['ok', '6', '1700000000'],
      changes: [],
    },
    { reply_to: '5', from: '' },
  ),
  sendDirect(
    'a request that was applied, and whose reply is cold',
    {
      seeds: [...ready, seeds.text(keys.request(partitionOf(direct), 'r'), '6 1700000000')],
      answer: ['ok', '6', '1700000000', expect.anything()],
      changes: [],
    },
    { reply_to: '5' },
  ),
  sendDirect('another run', { seeds: ready, answer: ['stale_run'] }, { run: 'other' }),
  sendDirect('a full journal', { seeds: [...ready, ...full(direct)], answer: ['journal_full'] }),
  sendDirect('a cold chat', { seeds: [open(direct)], answer: ['chat_missing', 'T'] }),
  sendDirect('copies of an older incarnation', {
    seeds: [open(direct), seeds.chat(direct, { pi: 94 })],
    answer: ['chat_missing', 'T'],
  }),
  sendDirect('a ticket that another left', {
    seeds: [open(direct), seeds.text(keys.ticket(keys.chat(direct)), 'first', 5_000)],
    answer: ['chat_missing', 'first'],
  }),
  sendDirect('a cold reply', { seeds: ready, answer: ['reply_missing', 'T'] }, { reply_to: '5' }),
  sendDirect(
    'an answer to what is not yet there',
    { seeds: ready, answer: ['reply_not_found'] },
    { reply_to: '8' },
  ),
  sendDirect(
    'an answer to what was deleted',
    { seeds: [...ready, seeds.message(direct, 5, deleted)], answer: ['reply_not_found'] },
    { reply_to: '5' },
  ),
  sendDirect('no queue', { seeds: [open(direct), seeds.chat(direct)], answer: ['queue_missing'] }),

  sendShared('a member writes', {
    seeds: groupReady,
    answer: ['ok', 8],
    changes: [...asGroup, 'msg:-100777:8', 'outbox'],
    async after(client) {
      const [entry] = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      // The sender itself hears nothing.
      expect([entry?.[0], entry?.[1][1]]).toEqual([`${base + 1}-0`, `${bot}`]);
    },
  }),
  sendShared('nobody listens', {
    seeds: [open(group), seeds.chat(group), member()],
    answer: ['ok', 8],
    changes: [...asGroup, 'msg:-100777:8'],
  }),
  sendShared('a request that was applied', {
    seeds: [...groupReady, seeds.text(keys.request(partitionOf(group), 'r'), '6 1700000000 0')],
    answer: ['ok', '6', '1700000000'],
    changes: [],
  }),
  sendShared(
    'a request that was applied, by one who left since',
    {
      seeds: [
        ...groupReady,
        member('left'),
        seeds.text(keys.request(partitionOf(group), 'r'), '6 1700000000 0'),
      ],
      answer: ['ok', '6', '1700000000'],
      changes: [],
    },
    { reply_to: '5' },
  ),
  ...channelSends,
  sendShared('another run', { seeds: groupReady, answer: ['stale_run'] }, { run: 'other' }),
  sendShared('a full journal', { seeds: [...groupReady, ...full(group)], answer: ['journal_full'] }),
  sendShared('a full outbox', { seeds: [...groupReady, outboxFull], answer: ['outbox_full'] }),
  sendShared('a cold chat', { seeds: [open(group), member()], answer: ['chat_missing', 'T'] }),
  sendShared('a cold member', { seeds: [open(group), seeds.chat(group)], answer: ['member_missing', 'T'] }),
  sendShared('a member copied under an older incarnation', {
    seeds: [open(group), seeds.chat(group), seeds.member(user, 'member', {}, 94)],
    answer: ['member_missing', 'T'],
  }),
  sendShared('who left', {
    seeds: [open(group), seeds.chat(group), member('left')],
    answer: ['not_member', 'group'],
  }),
  sendShared('a cold reply', { seeds: groupReady, answer: ['reply_missing', 'T'] }, { reply_to: '5' }),
  sendShared(
    'an answer to what was deleted',
    { seeds: [...groupReady, seeds.message(group, 5, deleted)], answer: ['reply_not_found'] },
    { reply_to: '5' },
  ),
];

const onceKey = (chat: ChatRef) => keys.request(partitionOf(chat), 'once.s.1');
const media = { type: 'photo', id: 'f', unique: 'u', url: 'https://example.org/a.jpg' } as const;

const editArgs = (chat: ChatRef, editor: number, what: string, messageId: number) => ({
  edit: pack([chatText(chat), `${messageId}`, `${editor}`, what, 'T']),
  content: pack({ text: 'new' }),
  markup: Buffer.alloc(0),
});

function edits(script: 'messages/edit_direct' | 'messages/edit_shared'): Case[] {
  const chat = script === 'messages/edit_direct' ? direct : group;
  const isDirect = chat === direct;
  // The user edits, so that a direct chat's bot hears of it.
  const own = { sender: user };
  const base0 = isDirect ? [open(chat), seeds.chat(chat), seeds.queue()] : groupReady;
  const changes = [
    ...(isDirect ? [...asDirect, ...inQueue] : [...asGroup, 'outbox']),
    `msg:${chatText(chat)}:7`,
  ];
  const edit = (
    what: string,
    more: Partial<Case> & Pick<Case, 'answer'>,
    kind = 'text',
    messageId = id,
  ): Case => ({
    ...{ script, what, keys: at(chat) },
    args: { ...editArgs(chat, user, kind, messageId), from: pack({ id: user }) },
    ...more,
  });
  const on = (given = {}) => [...base0, seeds.message(chat, id, { ...own, ...given })];
  return [
    edit('a new text', {
      seeds: on({ editedAt: Date.now() - 1_500 }),
      answer: ['ok'],
      changes,
      async after(client) {
        const stored = unpackMessage((await client.getBuffer(keys.message(chat, id))) as Buffer);
        expect(stored).toMatchObject({ version: base + 1, content: { text: 'new' }, sender: user });
        expect(Math.abs(stored.editedAt - Date.now())).toBeLessThan(2_000);
        expect((await client.xrange(keys.journal(partitionOf(chat)), '-', '+'))[0]?.[0]).toBe(
          `${base + 1}-0`,
        );
      },
    }),
    edit(
      'the keyboard of a forward',
      { seeds: on({ flags: messageFlags.forwarded, markup: keyboard('x') }), answer: ['ok'], changes },
      'markup',
    ),
    edit('a request that was applied', {
      seeds: [...on(), seeds.text(keys.request(partitionOf(chat), 'r'), '1')],
      answer: ['ok'],
      changes: [],
    }),
    ...(isDirect
      ? [
          edit('a user who blocked the bot', {
            seeds: [...on(), seeds.chat(chat, { t: 'blocked' })],
            answer: ['blocked'],
          }),
        ]
      : []),
    edit('a request that was applied to a message that was deleted since', {
      seeds: [...on(deleted), seeds.text(keys.request(partitionOf(chat), 'r'), '1')],
      answer: ['not_found'],
    }),
    {
      ...edit('under an idempotency key, which keeps what was made', { seeds: on(), answer: ['ok'] }),
      keys: { ...at(chat), request: onceKey(chat) },
      changes: changes.map((name) => (name === 'req:r' ? 'req:once.s.1' : name)),
      async after(client: Redis) {
        const kept = (await client.getBuffer(onceKey(chat))) as Buffer;
        const made = (await client.getBuffer(keys.message(chat, id))) as Buffer;
        expect(kept.equals(Buffer.concat([Buffer.from(`${chatText(chat)} ${id}\n`), made]))).toBe(true);
        expect(limits.idempotency_ttl_ms - (await client.pttl(onceKey(chat)))).toBeLessThan(60_000);
      },
    },
    {
      ...edit('a request of an idempotency key that was applied, on what is neither hot nor theirs', {
        seeds: [
          ...base0.slice(0, 2),
          seeds.text(
            onceKey(chat),
            Buffer.concat([Buffer.from(`${chatText(chat)} ${id}\n`), record({ content: { text: 'made' } })]),
          ),
        ],
        answer: ['ok', expect.stringContaining('made')],
        changes: [],
      }),
      keys: { ...at(chat), request: onceKey(chat) },
    },
    {
      ...edit('another run', { seeds: on(), answer: ['stale_run'] }),
      args: { ...editArgs(chat, user, 'text', id), from: '', run: 'other' },
    },
    edit('a full journal', { seeds: [...on(), ...full(chat)], answer: ['journal_full'] }),
    edit('a cold chat', { seeds: [open(chat)], answer: ['chat_missing', 'T'] }),
    edit('a cold message', { seeds: base0, answer: ['message_missing', 'T'] }),
    edit('an id that was not given out', { seeds: on(), answer: ['not_found'] }, 'text', 8),
    edit('a deleted message', { seeds: on(deleted), answer: ['not_found'] }),
    edit("another's message", { seeds: on({ sender: 77 }), answer: ['cant_be_edited'] }),
    edit('a service message', { seeds: on({ kind: messageKinds.service }), answer: ['cant_be_edited'] }),
    edit('the text of a forward', {
      seeds: on({ flags: messageFlags.forwarded }),
      answer: ['cant_be_edited'],
    }),
    edit('older than 48 hours', { seeds: on({ date: old }), answer: ['cant_be_edited'] }),
    edit('a message that is no text', { seeds: on({ kind: 3 as never }), answer: ['no_text'] }),
    edit('the caption of a text', { seeds: on(), answer: ['no_caption'] }, 'caption'),
    edit('the media of a text', { seeds: on(), answer: ['no_media'] }, 'media'),
    edit(
      'a caption leaves the media to the byte',
      {
        seeds: on({ kind: messageKinds.media, content: { text: 'old', media } }),
        answer: ['ok'],
        changes,
        async after(client) {
          const stored = unpackMessage((await client.getBuffer(keys.message(chat, id))) as Buffer);
          expect(stored.content).toEqual({ text: 'new', media });
        },
      },
      'caption',
    ),
    edit(
      'the caption that is there',
      { seeds: on({ kind: messageKinds.media, content: { text: 'new', media } }), answer: ['not_modified'] },
      'caption',
    ),
    edit('nothing new', { seeds: on({ content: { text: 'new' } }), answer: ['not_modified'] }),
    edit('a second edit within a second', {
      seeds: on({ editedAt: Date.now() + 60_000 }),
      answer: ['too_often'],
    }),
    edit('nothing new within a second', {
      seeds: on({ content: { text: 'new' }, editedAt: Date.now() }),
      answer: ['not_modified'],
    }),
    ...(isDirect
      ? [
          edit('no queue', {
            seeds: [open(chat), seeds.chat(chat), seeds.message(chat, id, own)],
            answer: ['queue_missing'],
          }),
        ]
      : [
          edit('a cold member', {
            seeds: [open(chat), seeds.chat(chat), seeds.message(chat, id, own)],
            answer: ['member_missing', 'T'],
          }),
          edit('who left', { seeds: [...on(), member('kicked')], answer: ['not_member', 'group'] }),
          edit('a full outbox', { seeds: [...on(), outboxFull], answer: ['outbox_full'] }),
        ]),
  ];
}

const remove = (
  chat: ChatRef,
  what: string,
  more: Partial<Case> & Pick<Case, 'answer'>,
  args = {},
): Case => ({
  ...{ script: 'messages/delete', what, keys: at(chat) },
  args: {
    chat: chatText(chat),
    message_id: `${id}`,
    who: `${user}`,
    direct: chat === direct,
    token: 'T',
    ...args,
  },
  ...more,
});
const groupMessage = (given = {}) => [...groupReady, seeds.message(group, id, given)];
const deletion = [...asGroup, 'msg:-100777:7'];

const removals: Case[] = [
  remove(direct, 'either side of a direct chat', {
    seeds: [open(direct), seeds.chat(direct), seeds.message(direct, id)],
    answer: ['ok'],
    changes: [...asDirect, `msg:${chatText(direct)}:7`],
    async after(client) {
      const [entry] = await client.xrange(keys.journal(partitionOf(direct)), '-', '+');
      expect(entry?.[1]).toEqual(['k', `msg:${chatText(direct)}:7`, 'i', '']);
      expect(unpackMessage((await client.getBuffer(keys.message(direct, id))) as Buffer)).toMatchObject({
        kind: 0,
        version: base + 1,
      });
    },
  }),
  remove(group, 'a pinned one is unpinned', {
    seeds: [open(group), seeds.chat(group, { pin: id }), member('creator'), seeds.message(group, id)],
    answer: ['ok'],
    changes: deletion,
    async after(client) {
      expect(await client.hmget(keys.chat(group), 'pin', 'v', 'c')).toEqual([
        '0',
        `${base + 2}`,
        `${base + 2}`,
      ]);
      const journal = await client.xrange(keys.journal(partitionOf(group)), '-', '+');
      expect(journal[1]?.[1]).toEqual(['k', 'pin:-100777', 'i', '', 's', keys.chat(group)]);
      const log = await client.xrange(keys.changes(group), '-', '+');
      const told = log.map(([, [, before, , kind, , about]]) => [before, kind, about]);
      expect(told).toEqual([
        [`${base}`, 'd', '7'],
        [`${base + 1}`, 'p', '0'],
      ]);
    },
  }),
  remove(group, 'its own', { seeds: groupMessage({ sender: user }), answer: ['ok'], changes: deletion }),
  remove(group, 'with the right', {
    seeds: [...groupMessage(), member('administrator', { can_delete_messages: true })],
    answer: ['ok'],
    changes: deletion,
  }),
  remove(group, 'as the creator', {
    seeds: [...groupMessage(), member('creator')],
    answer: ['ok'],
    changes: deletion,
  }),
  remove(group, 'a request that was applied', {
    seeds: [...groupMessage(), seeds.text(at(group).request, '1')],
    answer: ['ok'],
    changes: [],
  }),
  remove(group, 'another run', { seeds: groupMessage(), answer: ['stale_run'] }, { run: 'other' }),
  remove(group, 'a full journal', {
    seeds: [...groupMessage({ sender: user }), ...full(group)],
    answer: ['journal_full'],
  }),
  remove(group, 'a cold chat', { seeds: [open(group)], answer: ['chat_missing', 'T'] }),
  remove(group, 'a cold member', {
    seeds: [open(group), seeds.chat(group), seeds.message(group, id)],
    answer: ['member_missing', 'T'],
  }),
  remove(group, 'a cold message', { seeds: groupReady, answer: ['message_missing', 'T'] }),
  remove(group, 'who left', {
    seeds: [...groupMessage({ sender: user }), member('left')],
    answer: ['not_member', 'group'],
  }),
  remove(group, 'what was deleted', { seeds: groupMessage(deleted), answer: ['not_found'] }),
  remove(
    group,
    'what is not yet there',
    { seeds: groupMessage(), answer: ['not_found'] },
    { message_id: '8' },
  ),
  remove(group, "another's without the right", {
    seeds: [...groupMessage(), member('administrator', { can_edit_messages: true })],
    answer: ['cant_be_deleted'],
  }),
  remove(group, 'older than 48 hours', {
    seeds: groupMessage({ sender: user, date: old }),
    answer: ['cant_be_deleted'],
  }),
];

const fillKeys = { message: keys.message(direct, id), ticket: keys.ticket(keys.message(direct, id)) };
const fillArgs = { token: 'T', record: record(), ttl_ms: '60000' };
const rangeKeys = {
  meta: keys.meta(partitionOf(direct)),
  chat: keys.chat(direct),
  message: keys.messages(direct),
};

export const messageCases: Case[] = [
  ...sends,
  ...edits('messages/edit_direct'),
  ...edits('messages/edit_shared'),
  ...removals,
  {
    ...{ script: 'messages/fill', what: 'under its ticket', keys: fillKeys, args: fillArgs },
    ...{ seeds: [seeds.text(fillKeys.ticket, 'T', 5_000)], answer: ['ok', 1] },
    changes: [`msg:${chatText(direct)}:7`, `msg:${chatText(direct)}:7:ticket`],
    after: async (client) => expect(await client.pttl(fillKeys.message)).toBeGreaterThan(50_000),
  },
  {
    script: 'messages/fill',
    what: 'without a ticket',
    keys: fillKeys,
    args: fillArgs,
    answer: ['ok', 0],
    changes: [],
  },
  {
    ...{
      script: 'messages/fill',
      what: "under another's ticket",
      keys: fillKeys,
      args: fillArgs,
      answer: ['ok', 0],
    },
    ...{ seeds: [seeds.text(fillKeys.ticket, 'U', 5_000)], changes: [] },
  },
  {
    ...{
      script: 'messages/fill',
      what: 'where something is',
      keys: fillKeys,
      args: fillArgs,
      answer: ['ok', 0],
      changes: [],
    },
    seeds: [seeds.text(fillKeys.ticket, 'T', 5_000), seeds.message(direct, id)],
  },
  {
    ...{
      script: 'messages/read_range',
      what: 'rows with a hole',
      keys: rangeKeys,
      args: { before: '0', limit: '2' },
    },
    ...{
      seeds: [
        seeds.open(partitionOf(direct)),
        seeds.chat(direct),
        seeds.text(keys.message(direct, 6), 'six'),
      ],
      answer: ['ok', 7, expect.anything(), 7, [null, Buffer.from('six')]],
    },
    changes: [],
  },
  {
    script: 'messages/read_some',
    what: 'in the order of the ids, with a hole',
    keys: { meta: keys.meta(partitionOf(direct)), message: keys.messages(direct) },
    args: { ids: ['7', '6', '5'] },
    seeds: [
      seeds.open(partitionOf(direct)),
      seeds.text(keys.message(direct, 5), 'five'),
      seeds.text(keys.message(direct, 7), 'seven'),
    ],
    answer: ['ok', [Buffer.from('seven'), null, Buffer.from('five')]],
    changes: [],
  },
  {
    script: 'messages/read_range',
    what: 'a cold chat',
    keys: rangeKeys,
    args: { before: '0', limit: '2' },
    seeds: [seeds.open(partitionOf(direct))],
    answer: ['chat_missing'],
  },
  {
    script: 'messages/read_range',
    what: 'another run',
    keys: rangeKeys,
    args: { run: 'other', before: '0', limit: '2' },
    seeds: [seeds.open(partitionOf(direct)), seeds.chat(direct)],
    answer: ['stale_run'],
  },
  {
    script: 'messages/read_some',
    what: 'another run',
    keys: { meta: keys.meta(partitionOf(direct)), message: keys.messages(direct) },
    args: { run: 'other', ids: ['5'] },
    seeds: [seeds.open(partitionOf(direct))],
    answer: ['stale_run'],
  },
];

/**
 * Test cases for the scripts in messages/ that take many messages in one call, with every status that they can return.
 */
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageKinds, pack, packMessageTail, unpackMessage } from '../../src/store/core/codec.js';
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import {
  base,
  bot,
  direct,
  group,
  issued,
  keys,
  partitionOf,
  type Seed,
  seconds,
  seeds,
  user,
  versionIn,
} from './world.js';

type More = Partial<Case> & Pick<Case, 'answer'>;

const at = (chat: ChatRef) => {
  const partition = partitionOf(chat);
  const member = keys.member(chat.id, user);
  return {
    ...{ meta: keys.meta(partition), journal: keys.journal(partition), outbox: keys.outbox(partition) },
    ...{ chat: keys.chat(chat), ticket: keys.ticket(keys.chat(chat)), request: keys.request(partition, 'r') },
    ...{ changes: keys.changes(chat), channel: keys.chatChannel(chat), message: keys.messages(chat) },
    ...{ queue_state: keys.queueState(bot), queue: keys.queue(bot), bot_channel: keys.botChannel(bot) },
    due: keys.webhooksDue(partitionOf(direct)),
    ...{ member, member_ticket: keys.ticket(member), post: keys.postRoot(partition) },
    acted: keys.actedRoot(partition),
  };
};
const tail = (text: string) =>
  packMessageTail({ sender: user, kind: 1, flags: 0, content: { text }, markup: null, origin: {} });
const tails = ['a', 'b', 'c'].map(tail);
const open = (chat: ChatRef, fields = {}) => seeds.open(partitionOf(chat), fields);
const full = (chat: ChatRef, entries = 1): Seed[] => [
  open(chat, { hw: 1 }),
  seeds.stream(keys.journal(partitionOf(chat)), entries),
];
const deleted = { kind: messageKinds.deleted };
const member = (status = 'member', rights = {}) => seeds.member(user, status, rights);
const outboxFull = seeds.stream(keys.outbox(partitionOf(group)), limits.outbox_length_max);
const moved = (chat: ChatRef) => [
  ...[`chat:${chatText(chat)}`, `changes:${chatText(chat)}`, 'journal', 'meta', 'req:r'],
];
const messagesOf = (chat: ChatRef, ...ids: number[]) => ids.map((id) => `msg:${chatText(chat)}:${id}`);

const sendToUser = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'messages/send_to_user', what, keys: at(direct) },
  args: { chat: chatText(direct), reply_to: '', token: 'T', keep: '', tails, ...args },
  ...more,
});
const sendToBot = (what: string, more: More): Case => ({
  ...sendToUser(what, more),
  script: 'messages/send_to_bot',
  args: { ...sendToUser(what, more).args, from: pack({ id: user }) },
});
const sendShared = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'messages/send_shared', what, keys: at(group) },
  args: {
    ...{ chat: '-100777', sender: `${user}`, reply_to: '', from: pack({ id: user }) },
    ...{ partition: `${partitionOf(group)}`, token: 'T', keep: '', tails, ...args },
  },
  ...more,
});
const ready = [open(direct), seeds.chat(direct), seeds.queue()];
const groupReady = [open(group), seeds.chat(group, { b: `${bot}` }), member()];
const inChannel = [open(group), seeds.chat(group, { t: 'channel', b: `${bot}` })];
const firstPost = 42 * limits.partitions_max + partitionOf(group);
const posts = [0, 1, 2].map((i) => firstPost + i * limits.partitions_max);
const acted = (post: number, generation: number) => `${keys.acted(posts[post] as number)}${generation}`;

const sends: Case[] = [
  sendToBot('sends messages of a user in the given order', {
    seeds: ready,
    answer: ['ok', 8, expect.anything(), expect.anything(), null],
    changes: [...moved(direct), ...messagesOf(direct, 8, 9, 10), `queue:${bot}`, `queue_state:${bot}`],
    async after(client) {
      const stored = await client.mgetBuffer([8, 9, 10].map((id) => keys.message(direct, id)));
      const read = stored.map((bytes) => unpackMessage(bytes as Buffer));
      expect(read.map(({ version, content }) => [version, content.text])).toEqual([
        [base + 1, 'a'],
        [base + 2, 'b'],
        [base + 3, 'c'],
      ]);
      const journal = await client.xrange(keys.journal(partitionOf(direct)), '-', '+');
      expect(journal.map(([id, [, name]]) => [versionIn(id), name])).toEqual(
        [8, 9, 10].map((id, i) => [base + 1 + i, `msg:${chatText(direct)}:${id}`]),
      );
      const updates = await client.xrange(keys.queue(bot), '-', '+');
      expect(updates.map(([, fields]) => fields[7])).toEqual(['8', '9', '10']);
      expect(await client.hmget(keys.chat(direct), 's', 'v', 'c')).toEqual([
        '10',
        `${base + 3}`,
        `${base + 3}`,
      ]);
      const changes = await client.xrange(keys.changes(direct), '-', '+');
      expect(changes.map(([, fields]) => fields[1])).toEqual([`${base}`, `${base + 1}`, `${base + 2}`]);
      expect(await client.get(at(direct).request)).toMatch(/^8 \d+ 0 3$/);
    },
  }),
  sendToUser(
    'sends messages from the bot without updates to that bot',
    {
      seeds: [open(direct), seeds.chat(direct), seeds.message(direct, 5)],
      answer: ['ok', 8, expect.anything(), expect.anything(), expect.anything()],
      changes: [...moved(direct), ...messagesOf(direct, 8, 9, 10)],
      async after(client) {
        const journal = (await client.xrangeBuffer(keys.journal(partitionOf(direct)), '-', '+')) as [
          Buffer,
          Buffer[],
        ][];
        const sizes = journal.map(([, fields]) => (fields[1]?.length ?? 0) + (fields[3]?.length ?? 0));
        const [first = 0, second = 0, third = 0] = sizes;
        expect(journal.map(([entry, [, name]]) => [String(entry), String(name)])).toEqual([
          [`${base + 1}-0`, `msg:${chatText(direct)}:8`],
          [`${base + 2}-${first}`, `msg:${chatText(direct)}:9`],
          [`${base + 3}-${first + second}`, `msg:${chatText(direct)}:10`],
        ]);
        expect(await client.hmget(at(direct).meta, 'ver', 'jw')).toEqual([
          `${base + 3}`,
          `${first + second + third}`,
        ]);
        expect(await client.hmget(keys.chat(direct), 's', 'v', 'c')).toEqual([
          '10',
          `${base + 3}`,
          `${base + 3}`,
        ]);
      },
    },
    { reply_to: '5' },
  ),
  ...[sendToUser, sendToBot].flatMap((send) => [
    send('answers an already applied request again', {
      seeds: [...ready, seeds.text(at(direct).request, '6 1700000000')],
      answer: ['ok', '6', '1700000000'],
      changes: [],
    }),

    send('refuses while the journal is full', {
      seeds: [...ready, ...full(direct)],
      answer: ['journal_full'],
    }),
    send('reports a cold chat as missing', { seeds: [open(direct)], answer: ['chat_missing', issued('T')] }),
  ]),

  sendShared('sends one update for each message', {
    seeds: groupReady,
    answer: ['ok', 8, expect.anything(), expect.anything(), null, 1, '0'],
    changes: [...moved(group), ...messagesOf(group, 8, 9, 10), 'outbox'],
    async after(client) {
      const updates = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      expect(updates.map(([entry, f]) => [entry.split('-')[0], f[1], f[3], f[9]])).toEqual(
        [8, 9, 10].map((id, i) => [`${base + 1 + i}`, `${bot}`, 'message', `${id}`]),
      );
      const [, first = 0, second = 0] = updates.map(([entry]) => Number(entry.split('-')[1]));
      expect([first > 0, second]).toEqual([true, 2 * first]);
      expect(await client.get(at(group).request)).toMatch(/^8 \d+ 0 3$/);
    },
  }),
  sendShared('makes each message of a channel a post', {
    seeds: [
      ...inChannel,
      seeds.hash(at(group).meta, { post: 41, post_inc: 95 }),
      member('administrator', { can_post_messages: true }),
    ],
    answer: ['ok', 8, expect.anything(), expect.anything(), null, 1, `${firstPost}`],
    changes: [
      ...moved(group),
      ...messagesOf(group, 8, 9, 10),
      'outbox',
      ...posts.map((post) => `post:${post}`),
    ],
    async after(client) {
      for (const [i, post] of posts.entries()) {
        const stored = unpackMessage((await client.getBuffer(keys.message(group, 8 + i))) as Buffer);
        expect(stored.post).toBe(post);
        expect(await client.hget(keys.post(post), 'm')).toBe(`${8 + i}`);
      }
    },
  }),
  sendShared('answers an already applied request again', {
    seeds: [...groupReady, seeds.text(at(group).request, '6 1700000000 0')],
    answer: ['ok', '6', '1700000000', expect.anything(), null, 0, '0'],
    changes: [],
  }),
  sendShared('refuses a member of a channel without the right to post', {
    seeds: [...inChannel, member('administrator', { can_pin_messages: true })],
    answer: ['not_allowed'],
  }),
  sendShared('refuses content that the group does not permit its members', {
    seeds: [open(group), seeds.chat(group, { d: 'can_send_messages' }), member()],
    answer: ['not_permitted', 'text'],
  }),
  sendShared('refuses a restricted member', {
    seeds: [open(group), seeds.chat(group), member('restricted', { can_send_photos: true })],
    answer: ['not_permitted', 'text'],
  }),
  sendShared('refuses a different run id', { seeds: groupReady, answer: ['stale_run'] }, { run: 'other' }),
  sendShared('refuses while the journal is full', {
    seeds: [...groupReady, ...full(group)],
    answer: ['journal_full'],
  }),
  sendShared('refuses while the outbox is full', {
    seeds: [...groupReady, outboxFull],
    answer: ['outbox_full'],
  }),
  sendShared('reports a cold chat as missing', {
    seeds: [open(group), member()],
    answer: ['chat_missing', issued('T')],
  }),
  sendShared('reports a cold member as missing', {
    seeds: [open(group), seeds.chat(group)],
    answer: ['member_missing', issued('T')],
  }),
  sendShared('refuses a former member', {
    seeds: [open(group), seeds.chat(group), member('left')],
    answer: ['not_member', 'group'],
  }),
  sendShared(
    'reports a cold replied-to message as missing',
    { seeds: groupReady, answer: ['reply_missing', issued('T')] },
    { reply_to: '5' },
  ),
  sendShared(
    'refuses a reply to an id that was not given out',
    { seeds: groupReady, answer: ['reply_not_found'] },
    { reply_to: '8' },
  ),
];

const read = (chat: ChatRef, what: string, more: More, args = {}): Case => ({
  ...{ script: 'messages/read_many', what, keys: at(chat) },
  args: { direct: chat === direct, token: 'T', ids: ['6', '5', '9', '6'], ...args },
  changes: [],
  ...more,
});
const six = (chat: ChatRef) => seeds.text(keys.message(chat, 6), 'six');
const row = Buffer.from('six');

const reads: Case[] = [
  read(direct, 'returns messages in the order of the ids, with gaps', {
    seeds: [open(direct), seeds.chat(direct), six(direct)],
    answer: ['ok', 7, expect.anything(), [row, null, null, row]],
  }),
  read(group, 'reads messages for a member', {
    seeds: [...groupReady, six(group)],
    answer: ['ok', 7, expect.anything(), [row, null, null, row]],
  }),
  read(group, 'refuses a different run id', { seeds: groupReady, answer: ['stale_run'] }, { run: 'other' }),
  read(group, 'reports a cold chat as missing', {
    seeds: [open(group), member()],
    answer: ['chat_missing', issued('T')],
  }),
  read(group, 'reports a cold member as missing', {
    seeds: [open(group), seeds.chat(group)],
    answer: ['member_missing', issued('T')],
  }),
  read(group, 'refuses a former member', {
    seeds: [open(group), seeds.chat(group, { t: 'channel' }), member('left'), six(group)],
    answer: ['not_member', 'channel'],
  }),
];

const remove = (chat: ChatRef, what: string, more: More, args = {}): Case => ({
  ...{ script: 'messages/delete_batch', what, keys: at(chat) },
  args: {
    ...{ chat: chatText(chat), who: `${user}`, direct: chat === direct, token: 'T' },
    ...{ ids: ['5', '6'], ...args },
  },
  ...more,
});
const own = { sender: user };
const bytes = (text: string) => Buffer.from(text);
const messages = (chat: ChatRef, five = {}, sixth = {}) => [
  seeds.message(chat, 5, { ...own, ...five }),
  seeds.message(chat, 6, { ...own, ...sixth }),
];

const removals: Case[] = [
  remove(
    direct,
    'deletes existing messages and skips others',
    {
      seeds: [
        open(direct),
        seeds.chat(direct),
        ...messages(direct, {}, { sender: bot }),
        seeds.message(direct, 4, deleted),
      ],
      answer: ['ok'],
      changes: [...moved(direct), ...messagesOf(direct, 5, 6)],
      async after(client) {
        const journal = await client.xrange(keys.journal(partitionOf(direct)), '-', '+');
        expect(journal.map(([id, fields]) => [versionIn(id), ...fields])).toEqual(
          [5, 6].map((id, i) => [
            ...[base + 1 + i, 'k', `msg:${chatText(direct)}:${id}`, 'i', expect.stringMatching(/./)],
          ]),
        );
        const stored = unpackMessage((await client.getBuffer(keys.message(direct, 6))) as Buffer);
        expect(stored).toMatchObject({ kind: 0, version: base + 2 });
        expect(await client.hget(keys.chat(direct), 'v')).toBe(`${base + 2}`);
      },
    },
    { ids: ['5', '6', '4', '8'] },
  ),
  remove(group, 'deletes posts of a channel, including the pinned one', {
    seeds: [
      ...[open(group), seeds.chat(group, { t: 'channel', pin: 5 }), member()],
      ...messages(group, { post: posts[0] as number }, { post: posts[1] as number }),
      seeds.hash(keys.post(posts[0] as number), { c: `${group.id}`, m: 5, u: 2, g: 9, gp: 8 }),
      ...[acted(0, 9), acted(0, 8), acted(1, 0)].map((key) => seeds.hash(key, { 1: 'x', n: 1, v: base })),
    ],
    answer: ['ok'],
    changes: [
      ...[acted(0, 9), acted(0, 8), acted(1, 0)].map((key) => key.slice(key.indexOf('acted:'))),
      ...[...moved(group), ...messagesOf(group, 5, 6)],
      ...posts.slice(0, 2).map((post) => `post:${post}`),
    ],
    async after(client) {
      const journal = await client.xrange(keys.journal(partitionOf(group)), '-', '+');
      // The entry of a deleted message is not empty, because its tombstone contains the date of the message.
      expect(journal.map(([id, [, name, , image]]) => [versionIn(id), name, image === ''])).toEqual([
        [base + 1, 'msg:-100777:5', false],
        [base + 2, `post:${partitionOf(group)}:42`, true],
        [base + 3, 'msg:-100777:6', false],
        [base + 4, `post:${partitionOf(group)}:43`, true],
        [base + 5, 'pin:-100777', true],
      ]);
      expect(await client.hget(keys.post(posts[1] as number), 'x')).toBe('1');
      expect(await client.exists(acted(0, 9), acted(0, 8), acted(1, 0))).toBe(0);
      expect(await client.hmget(keys.chat(group), 'pin', 'v')).toEqual(['0', `${base + 5}`]);
      const changes = await client.xrange(keys.changes(group), '-', '+');
      expect(changes.map(([, [, before, , kind]]) => [before, kind])).toEqual([
        [`${base}`, 'd'],
        [`${base + 1}`, 'd'],
        [`${base + 3}`, 'p'],
      ]);
    },
  }),
  remove(group, 'deletes the sender’s own messages', {
    seeds: [...groupReady, ...messages(group)],
    answer: ['ok'],
    changes: [...moved(group), ...messagesOf(group, 5, 6)],
  }),
  remove(group, 'deletes messages of others with the right to do so', {
    seeds: [
      ...[open(group), seeds.chat(group), member('administrator', { can_delete_messages: true })],
      ...messages(group, { sender: 77 }),
    ],
    answer: ['ok'],
    changes: [...moved(group), ...messagesOf(group, 5, 6)],
  }),
  remove(
    group,
    'deletes nothing if no message exists',
    { seeds: groupReady, answer: ['ok'], changes: ['req:r'] },
    { ids: ['8'] },
  ),
  remove(group, 'answers an already applied request again', {
    seeds: [...groupReady, ...messages(group), seeds.text(at(group).request, '1')],
    answer: ['ok'],
    changes: [],
  }),
  remove(group, 'refuses a list with another sender’s message', {
    seeds: [...groupReady, ...messages(group, {}, { sender: 77 })],
    answer: ['cant_be_deleted'],
  }),
  remove(direct, 'refuses a list with a message older than 48 hours', {
    seeds: [
      ...[open(direct), seeds.chat(direct)],
      ...messages(direct, {}, { date: seconds() - limits.delete_age_ms_max / 1000 - 1 }),
    ],
    answer: ['cant_be_deleted'],
  }),
  remove(
    group,
    'reports cold messages as missing, with a ticket each',
    {
      seeds: [
        ...groupReady,
        seeds.message(group, 5, own),
        seeds.text(`${keys.message(group, 6)}:ticket`, 'U', 5_000),
      ],
      answer: ['messages_missing', ['6', '7'].map(bytes), [issued('U'), issued('T')].map(bytes)],
    },
    { ids: ['5', '6', '7'] },
  ),
  remove(group, 'refuses a different run id', { seeds: groupReady, answer: ['stale_run'] }, { run: 'other' }),
  remove(group, 'refuses when the journal’s reserve is used up', {
    seeds: [...groupReady, ...messages(group), ...full(group, limits.journal_reserve)],
    answer: ['journal_full'],
  }),
  remove(group, 'reports a cold chat as missing', {
    seeds: [open(group)],
    answer: ['chat_missing', issued('T')],
  }),
  remove(group, 'reports a cold member as missing', {
    seeds: [open(group), seeds.chat(group)],
    answer: ['member_missing', issued('T')],
  }),
  remove(group, 'refuses a former member', {
    seeds: [open(group), seeds.chat(group), member('left'), ...messages(group)],
    answer: ['not_member', 'group'],
  }),
];

export const messageBatchCases: Case[] = [...sends, ...reads, ...removals];

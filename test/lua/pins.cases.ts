import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageKinds, pack, packMessageTail, unpack, unpackMessage } from '../../src/store/core/codec.js';
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import { directKeys, sharedKeys, withMessage } from '../../src/store/core/script_keys.js';
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
  seeds,
  user,
  versionIn,
} from './world.js';

const id = 5;
const profile = pack({ id: user });
const at = (chat: ChatRef) => ({
  ...withMessage(keys, directKeys(keys, direct, 'r'), direct, id),
  ...withMessage(keys, sharedKeys(keys, chat, 'r', user), chat, id),
});
const tail = packMessageTail({
  sender: user,
  kind: messageKinds.service,
  flags: 0,
  content: {},
  markup: null,
  origin: { service: { pinned: id } },
});

function pinOf(chat: ChatRef, who = user) {
  const script = chat === direct ? ('messages/pin_direct' as const) : ('messages/pin_shared' as const);
  return (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}, messageId = id): Case => ({
    ...{ script, what, keys: at(chat) },
    args: {
      ...{ pin: pack([chatText(chat), `${messageId}`, `${who}`]), tail, from: profile, notify: '1' },
      token: 'T',
      ...args,
    },
    ...more,
  });
}

const unpin = (chat: ChatRef, what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'messages/unpin', what, keys: at(chat) },
  args: { chat: chatText(chat), message_id: '', all: false, direct: chat === direct, token: 'T', ...args },
  ...more,
});

const open = (chat: ChatRef, fields = {}) => seeds.open(partitionOf(chat), fields);
const full = (chat: ChatRef, entries = 1): Seed[] => [
  open(chat, { hw: 1 }),
  seeds.stream(keys.journal(partitionOf(chat)), entries),
];
const member = (status = 'member', rights = {}) => seeds.member(user, status, rights);
const changesOf = (chat: ChatRef) => {
  const name = chatText(chat);
  return [`changes:${name}`, `chat:${name}`, 'journal', 'meta', 'req:r'];
};
const pinned = (chat: ChatRef) => [...changesOf(chat), `msg:${chatText(chat)}:8`];

/**
 * Expects the result of a pin that replaces another pin. The journal and the log contain first the pin and then the
 * service message about the pin.
 */
async function expectPin(client: Redis, chat: ChatRef): Promise<void> {
  const name = chatText(chat);
  const swapped = [`${id}`, `${base + 2}`, `${base + 2}`, '8'];
  expect(await client.hmget(keys.chat(chat), 'pin', 'v', 'c', 's')).toEqual(swapped);
  const service = unpackMessage((await client.getBuffer(keys.message(chat, 8))) as Buffer);
  expect(service).toMatchObject({ kind: messageKinds.service, version: base + 1, post: 0 });
  expect(service.origin.service).toEqual({ pinned: id });
  const journal = (await client.callBuffer('XRANGE', keys.journal(partitionOf(chat)), '-', '+')) as [
    Buffer,
    Buffer[],
  ][];
  expect(journal.map(([id]) => versionIn(id))).toEqual([base + 1, base + 2]);
  const [, entity, , image, , state] = journal[1]?.[1] ?? [];
  expect([String(entity), unpack(image as Buffer), String(state)]).toEqual([
    `pin:${name}`,
    [id],
    keys.chat(chat),
  ]);
  const log = await client.xrange(keys.changes(chat), '-', '+');
  expect(log.map(([, [, before, , kind, , about, , , , extra]]) => [before, kind, about, extra])).toEqual([
    [`${base}`, 'n', '8', ''],
    [`${base + 1}`, 'p', `${id}`, '1'],
  ]);
}

/** Makes the cases that are the same in both kinds of chat: refused calls and repeated calls. */
function common(chat: ChatRef, ready: readonly Seed[]): Case[] {
  const pin = pinOf(chat);
  const chatOnly = ready.slice(0, -1);
  return [
    pin('accepts a message that is already pinned', {
      seeds: [...ready, seeds.chat(chat, { pin: id })],
      answer: ['ok'],
      changes: ['req:r'],
    }),
    pin('accepts an already pinned message while the journal is full', {
      seeds: [...ready, ...full(chat), seeds.chat(chat, { pin: id })],
      answer: ['ok'],
      changes: ['req:r'],
    }),
    pin('answers an already applied request again', {
      seeds: [...ready, seeds.text(keys.request(partitionOf(chat), 'r'), '1')],
      answer: ['ok'],
      changes: [],
    }),
    pin('refuses a different run id', { seeds: ready, answer: ['stale_run'] }, { run: 'other' }),
    pin('refuses while the journal is full', { seeds: [...ready, ...full(chat)], answer: ['journal_full'] }),
    pin('reports a cold chat as missing', { seeds: [open(chat)], answer: ['chat_missing', issued('T')] }),
    pin('reports a cold message as missing', { seeds: chatOnly, answer: ['message_missing', issued('T')] }),
    pin('refuses an id that was not given out', { seeds: ready, answer: ['not_found'] }, {}, 8),
    pin('refuses a deleted message', {
      seeds: [...chatOnly, seeds.message(chat, id, { kind: messageKinds.deleted })],
      answer: ['not_found'],
    }),
    pin('refuses a service message', {
      seeds: [...chatOnly, seeds.message(chat, id, { kind: messageKinds.service })],
      answer: ['service'],
    }),
  ];
}

const directReady = [open(direct), seeds.chat(direct), seeds.queue(), seeds.message(direct, id)];
const groupReady = [
  open(group),
  seeds.chat(group, { b: `${bot},${user}` }),
  member('administrator', { can_pin_messages: true }),
  seeds.message(group, id),
];
const inQueue = [`queue:${bot}`, `queue_state:${bot}`];

const pins: Case[] = [
  unpin(direct, 'keeps the reply keyboards of the chat', {
    seeds: [...directReady, seeds.chat(direct, { pin: id, kb: '6,4' })],
    answer: ['ok'],
    changes: changesOf(direct),
    async after(client) {
      const [[, fields]] = (await client.callBuffer(
        'XRANGE',
        keys.journal(partitionOf(direct)),
        '-',
        '+',
      )) as [[Buffer, Buffer[]]];
      expect(unpack(fields[3] as Buffer)).toEqual([0, '6,4']);
    },
  }),
  pinOf(direct)('replaces the pinned message for a user', {
    seeds: [...directReady, seeds.chat(direct, { pin: 3 })],
    answer: ['ok'],
    changes: [...pinned(direct), ...inQueue],
    async after(client) {
      await expectPin(client, direct);
      const [entry] = (await client.callBuffer('XRANGE', keys.queue(bot), '-', '+')) as [Buffer, Buffer[]][];
      const [, kind, , , , , , id, , , , from, , peer, , y] = entry?.[1] ?? [];
      expect([String(kind), String(id), from, String(peer)]).toEqual(['message', '8', profile, '']);
      expect(unpackMessage(y as Buffer).content).toEqual({ text: 'old' });
    },
  }),
  pinOf(direct, bot)('pins for the bot and sends it an update', {
    seeds: directReady,
    answer: ['ok'],
    changes: [...pinned(direct), ...inQueue],
    async after(client) {
      const [entry] = (await client.callBuffer('XRANGE', keys.queue(bot), '-', '+')) as [Buffer, Buffer[]][];
      expect(entry?.[1][13]).toEqual(pack({ id: 1, n: 'P' }));
    },
  }),
  pinOf(direct, bot)('refuses a bot that the user blocked', {
    seeds: [...directReady, seeds.chat(direct, { t: 'blocked' })],
    answer: ['blocked'],
  }),
  pinOf(direct)('refuses a user who blocked the bot', {
    seeds: [...directReady, seeds.chat(direct, { t: 'blocked' })],
    answer: ['blocked'],
  }),
  pinOf(direct)('reports a missing queue', {
    seeds: [open(direct), seeds.chat(direct), seeds.message(direct, id)],
    answer: ['queue_missing'],
  }),
  ...common(direct, directReady),

  pinOf(group)('pins for a person with the right and sends updates to every bot', {
    seeds: [...groupReady, seeds.chat(group, { b: `${bot},77` })],
    answer: ['ok', 1],
    changes: [...pinned(group), 'outbox'],
    async after(client) {
      await expectPin(client, group);
      const [entry] = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      expect(entry?.[1].slice(0, 4)).toEqual(['b', `${bot},77`, 'k', 'message']);
    },
  }),
  pinOf(group)('pins for a bot with the right and sends the update to that bot only', {
    seeds: groupReady,
    answer: ['ok', 1],
    changes: [...pinned(group), 'outbox'],
    async after(client) {
      await expectPin(client, group);
      const [entry] = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      expect(entry?.[1].slice(0, 4)).toEqual(['b', `${user}`, 'k', 'message']);
    },
  }),
  pinOf(group)('writes no outbox entry if no bot listens', {
    seeds: [...groupReady, seeds.chat(group, { b: '' })],
    answer: ['ok', 0],
    changes: pinned(group),
  }),
  pinOf(group)('pins in a channel without making a post', {
    seeds: [
      ...groupReady,
      seeds.chat(group, { t: 'channel', b: `${bot}` }),
      member('administrator', { can_edit_messages: true }),
    ],
    answer: ['ok', 1],
    changes: [...pinned(group), 'outbox'],
    async after(client) {
      await expectPin(client, group);
      const [entry] = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      expect(entry?.[1].slice(2, 4)).toEqual(['k', 'channel_post']);
    },
  }),
  pinOf(group)('refuses a pin in a channel by a member with the right for groups only', {
    seeds: [...groupReady, seeds.chat(group, { t: 'channel' })],
    answer: ['not_allowed'],
  }),
  pinOf(group)('refuses a pin in a group by a member with the right for channels only', {
    seeds: [...groupReady, member('administrator', { can_edit_messages: true })],
    answer: ['not_allowed'],
  }),
  pinOf(group)('refuses a member without the right', {
    seeds: [...groupReady, member()],
    answer: ['not_allowed'],
  }),
  pinOf(group)('lets both members of a chat of two people pin', {
    seeds: [open(group), seeds.chat(group, { t: 'person' }), seeds.message(group, id), member()],
    answer: ['ok'],
    changes: pinned(group),
  }),
  pinOf(group)('refuses a pin in a closed chat of two people', {
    seeds: [open(group), seeds.chat(group, { t: 'closed' }), seeds.message(group, id), member()],
    answer: ['chat_closed'],
  }),
  pinOf(group)('refuses a former member', {
    seeds: [...groupReady, member('left')],
    answer: ['not_member', 'group'],
  }),
  pinOf(group)('reports a cold member as missing', {
    seeds: [open(group), seeds.chat(group), seeds.message(group, id)],
    answer: ['member_missing', issued('T')],
  }),
  pinOf(group)('refuses while the outbox is full', {
    seeds: [...groupReady, seeds.stream(keys.outbox(partitionOf(group)), limits.outbox_length_max)],
    answer: ['outbox_full'],
  }),
  ...common(group, groupReady),
];

const withPin = [...groupReady, seeds.chat(group, { pin: id })];
const unpins: Case[] = [
  unpin(direct, 'unpins for either side of a direct chat', {
    seeds: [...directReady, seeds.chat(direct, { pin: id })],
    answer: ['ok'],
    changes: changesOf(direct),
    async after(client) {
      expect(await client.hmget(keys.chat(direct), 'pin', 'v', 's')).toEqual(['0', `${base + 1}`, '7']);
      const [entry] = await client.xrange(keys.journal(partitionOf(direct)), '-', '+');
      expect(entry?.[1]).toEqual(['k', `pin:${chatText(direct)}`, 'i', '', 's', keys.chat(direct)]);
    },
  }),
  unpin(
    group,
    'unpins the given message',
    { seeds: withPin, answer: ['ok'], changes: changesOf(group) },
    { message_id: `${id}` },
  ),
  unpin(
    group,
    'reports a message that is not pinned as not found',
    { seeds: withPin, answer: ['not_found'] },
    { message_id: '6' },
  ),
  unpin(group, 'reports not found if no message is pinned', { seeds: groupReady, answer: ['not_found'] }),
  unpin(
    group,
    'accepts unpinning all if no message is pinned',
    { seeds: groupReady, answer: ['ok'], changes: ['req:r'] },
    { all: true },
  ),
  unpin(
    group,
    'unpins all messages',
    { seeds: withPin, answer: ['ok'], changes: changesOf(group) },
    { all: true },
  ),
  unpin(group, 'answers an already applied request again', {
    seeds: [...withPin, seeds.text(at(group).request, '1')],
    answer: ['ok'],
    changes: [],
  }),
  unpin(group, 'refuses a different run id', { seeds: withPin, answer: ['stale_run'] }, { run: 'other' }),
  unpin(group, 'refuses when the journal’s reserve is used up', {
    seeds: [...withPin, ...full(group, limits.journal_reserve)],
    answer: ['journal_full'],
  }),
  unpin(group, 'reports a cold chat as missing', {
    seeds: [open(group)],
    answer: ['chat_missing', issued('T')],
  }),
  unpin(group, 'reports a cold member as missing', {
    seeds: [open(group), seeds.chat(group, { pin: id })],
    answer: ['member_missing', issued('T')],
  }),
  unpin(group, 'refuses a former member', {
    seeds: [...withPin, member('kicked')],
    answer: ['not_member', 'group'],
  }),
  unpin(group, 'refuses a member without the right', {
    seeds: [...withPin, member()],
    answer: ['not_allowed'],
  }),
];

export const pinCases: Case[] = [...pins, ...unpins];

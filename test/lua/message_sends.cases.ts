import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { unpack, unpackMessage } from '../../src/store/core/codec.js';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import {
  asDirect,
  asGroup,
  at,
  deleted,
  full,
  groupOfBots,
  groupReady,
  inChannel,
  inQueue,
  member,
  open,
  outboxFull,
  outboxOfBytes,
  post,
  poster,
  postNumber,
  ready,
  sendShared,
  sendToBot,
  sendToUser,
} from './message_world.js';
import { base, bot, direct, group, issued, keys, partitionOf, seeds, user, versionIn } from './world.js';

const channelSends: Case[] = [
  sendShared('makes a message of a channel a post', {
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
        [`post:${partitionOf(group)}:${postNumber}`, keys.post(post)],
      ]);
      const [update] = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      expect(update?.[1].slice(2, 4)).toEqual(['k', 'channel_post']);
    },
  }),
  sendShared('sends a bot’s post to the other bots of the channel, not to itself', {
    seeds: [open(group), seeds.chat(group, { t: 'channel', b: `${bot},${user}` }), poster],
    answer: ['ok', 8],
    changes: [...asGroup, 'msg:-100777:8', 'outbox', `post:${post}`],
    async after(client) {
      const [entry] = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      expect(entry?.[1].slice(0, 2)).toEqual(['b', `${bot}`]);
    },
  }),
  sendShared('numbers posts upwards within an incarnation', {
    seeds: [...inChannel, seeds.hash(at(group).meta, { post: 41, post_inc: 95 }), poster],
    answer: ['ok', 8],
    changes: [
      ...asGroup,
      'msg:-100777:8',
      'outbox',
      `post:${42 * limits.partitions_max + partitionOf(group)}`,
    ],
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
];

async function journalOf(client: Redis, partition: number) {
  const entries = (await client.callBuffer('XRANGE', keys.journal(partition), '-', '+')) as [
    Buffer,
    Buffer[],
  ][];
  return {
    entries: entries.map(([version, [, name]]) => [versionIn(version), String(name)]),
    image: unpack(entries.at(-1)?.[1][3] as Buffer),
  };
}

const keyboardSends: Case[] = [
  ...[sendToUser, sendToBot].map((send) =>
    send(
      'notes the reply keyboard of a direct chat in place of earlier keyboards',
      {
        seeds: [open(direct), seeds.chat(direct, { kb: '6,5', pin: '3' }), seeds.queue()],
        answer: ['ok', 8],
        changes: [...asDirect, ...(send === sendToBot ? inQueue : []), `msg:${chatText(direct)}:8`],
        async after(client) {
          const fields = await client.hmget(keys.chat(direct), 'kb', 'pin', 's', 'v', 'c');
          expect(fields).toEqual(['8', '3', '8', `${base + 2}`, `${base + 1}`]);
          expect(await journalOf(client, partitionOf(direct))).toEqual({
            entries: [
              [base + 1, `msg:${chatText(direct)}:8`],
              [base + 2, `pin:${chatText(direct)}`],
            ],
            image: [3, '8'],
          });
        },
      },
      { keep: 'rk' },
    ),
  ),
  sendShared(
    'adds a reply keyboard for some members to the earlier keyboards, up to a limit',
    {
      seeds: [
        open(group),
        seeds.chat(group, { kb: Array.from({ length: 20 }, (_, i) => 57 - i).join() }),
        member(),
      ],
      answer: ['ok', 8],
      changes: [...asGroup, 'msg:-100777:8'],
      async after(client) {
        const kept = [8, ...Array.from({ length: limits.chat_keyboards_max - 1 }, (_, i) => 57 - i)].join();
        expect(await client.hget(keys.chat(group), 'kb')).toBe(kept);
        expect((await journalOf(client, partitionOf(group))).image).toEqual([0, kept]);
      },
    },
    { keep: 's' },
  ),
  sendShared(
    'notes no reply keyboard when a request is repeated',
    {
      seeds: [...groupReady, seeds.text(keys.request(partitionOf(group), 'r'), '5 1700000000 0 1')],
      answer: ['ok', 5],
      changes: [],
    },
    { keep: 'rk' },
  ),
];

const directSends: Case[] = [sendToUser, sendToBot].flatMap((send) => [
  send('refuses a different run id', { seeds: ready, answer: ['stale_run'] }, { run: 'other' }),
  send('refuses while the journal is full', {
    seeds: [...ready, ...full(direct)],
    answer: ['journal_full'],
  }),
  send('reports a cold chat as missing', { seeds: [open(direct)], answer: ['chat_missing', issued('T')] }),
  send('reports copies of an older incarnation as missing', {
    seeds: [open(direct), seeds.chat(direct, { pi: 94 })],
    answer: ['chat_missing', issued('T')],
  }),
  send('reports a cold chat as missing with the ticket of an earlier call', {
    seeds: [open(direct), seeds.text(keys.ticket(keys.chat(direct)), 'first', 5_000)],
    answer: ['chat_missing', issued('first')],
  }),
  send(
    'reports a cold replied-to message as missing',
    { seeds: ready, answer: ['reply_missing', issued('T')] },
    { reply_to: '5' },
  ),
  send(
    'refuses a reply to an id that was not given out',
    { seeds: ready, answer: ['reply_not_found'] },
    { reply_to: '8' },
  ),
  send(
    'refuses a reply to a deleted message',
    { seeds: [...ready, seeds.message(direct, 5, deleted)], answer: ['reply_not_found'] },
    { reply_to: '5' },
  ),
]);

const sends: Case[] = [
  ...keyboardSends,
  sendToBot('writes no log for a chat without readers', {
    seeds: [open(direct), seeds.unseen(direct), seeds.queue()],
    answer: ['ok', 8],
    changes: [
      `chat:${chatText(direct)}`,
      'journal',
      'meta',
      'req:r',
      `msg:${chatText(direct)}:8`,
      ...inQueue,
    ],
  }),
  sendToBot('sends a message of a user', {
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
      // The version is above 10^14. Lua’s concatenation would round such a number.
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
  sendToUser('sends a message of a bot without an update to itself', {
    seeds: [open(direct), seeds.chat(direct)],
    answer: ['ok', 8],
    changes: [...asDirect, `msg:${chatText(direct)}:8`],
  }),
  sendToUser('continues the versions and the byte count of the journal', {
    seeds: [open(direct, { jw: 500 }), seeds.chat(direct)],
    answer: ['ok', 8],
    changes: [...asDirect, `msg:${chatText(direct)}:8`],
    async after(client) {
      const record = (await client.getBuffer(keys.message(direct, 8))) as Buffer;
      expect(unpackMessage(record)).toMatchObject({ version: base + 1, content: { text: 'new' } });
      const entity = `msg:${chatText(direct)}:8`;
      const journal = keys.journal(partitionOf(direct));
      const [[id, fields]] = (await client.xrangeBuffer(journal, '-', '+')) as [[Buffer, Buffer[]]];
      expect([String(id), fields]).toEqual([
        `${base + 1}-500`,
        [Buffer.from('k'), Buffer.from(entity), Buffer.from('i'), record],
      ]);
      const counters = await client.hmget(at(direct).meta, 'ver', 'jw');
      expect(counters).toEqual([`${base + 1}`, `${500 + entity.length + record.length}`]);
      expect(await client.hmget(keys.chat(direct), 's', 'v', 'c')).toEqual([
        '8',
        `${base + 1}`,
        `${base + 1}`,
      ]);
    },
  }),
  sendToUser('skips ids under a new incarnation', {
    seeds: [open(direct), seeds.chat(direct, { i: 94 })],
    answer: ['ok', 8 + limits.incarnation_sequence_skip],
    changes: [...asDirect, `msg:${chatText(direct)}:${8 + limits.incarnation_sequence_skip}`],
    async after(client) {
      expect(await client.hget(keys.chat(direct), 'i')).toBe('95');
    },
  }),
  sendToUser('refuses a bot that the user blocked', {
    seeds: [open(direct), seeds.chat(direct, { t: 'blocked' })],
    answer: ['blocked'],
  }),
  sendToBot('refuses a user who blocked the bot', {
    seeds: [...ready, seeds.chat(direct, { t: 'blocked' })],
    answer: ['blocked'],
  }),
  sendToBot('gives the first message of a new chat id 1 without a skip', {
    seeds: [open(direct), seeds.chat(direct, { s: 0 }), seeds.queue()],
    answer: ['ok', 1],
    changes: [...asDirect, `msg:${chatText(direct)}:1`, ...inQueue],
  }),
  sendToBot('skips ids in both sequences under a new incarnation', {
    seeds: [open(direct), seeds.chat(direct, { i: 94 }), seeds.queue({ inc: 94 })],
    answer: ['ok', 7 + 10_001],
    changes: [...asDirect, `msg:${chatText(direct)}:10008`, ...inQueue],
    after: async (client) => expect((await client.xrange(keys.queue(bot), '-', '+'))[0]?.[0]).toBe('10042-0'),
  }),
  sendToBot('queues no update that the mask leaves out', {
    seeds: [open(direct), seeds.chat(direct), seeds.queue({ mask: 62 })],
    answer: ['ok', 8],
    changes: [...asDirect, `msg:${chatText(direct)}:8`],
  }),
  sendToBot('moves the oldest updates of a full queue to dead letters', {
    seeds: [...ready, seeds.entry(30), seeds.queue({ bytes: limits.queue_bytes_max })],
    answer: ['ok', 8],
    changes: [...asDirect, `msg:${chatText(direct)}:8`, ...inQueue],
    async after(client) {
      const journal = await client.xrange(keys.journal(partitionOf(direct)), '-', '+');
      expect(journal.map(([, fields]) => fields[1])).toEqual([`msg:${chatText(direct)}:8`, `dead:${bot}:30`]);
      expect((await client.xrange(keys.queue(bot), '-', '+')).map(([name]) => name)).toEqual(['42-0']);
    },
  }),
  sendToBot('answers an already applied request again', {
    seeds: [...ready, seeds.text(keys.request(partitionOf(direct), 'r'), '6 1700000000')],
    answer: ['ok', '6', '1700000000'],
    changes: [],
  }),
  sendToBot(
    'sends a reply to a message',
    {
      seeds: [...ready, seeds.message(direct, 5)],
      answer: ['ok', 8],
      changes: [...asDirect, `msg:${chatText(direct)}:8`, ...inQueue],
    },
    { reply_to: '5' },
  ),
  sendToUser(
    'answers an already applied request again even if the replied-to message was deleted and the bot blocked',
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
    { reply_to: '5' },
  ),
  sendToBot(
    'answers an already applied request again even if the replied-to message is cold',
    {
      seeds: [...ready, seeds.text(keys.request(partitionOf(direct), 'r'), '6 1700000000')],
      answer: ['ok', '6', '1700000000', expect.anything()],
      changes: [],
    },
    { reply_to: '5' },
  ),
  sendToBot('reports a missing queue', {
    seeds: [open(direct), seeds.chat(direct)],
    answer: ['queue_missing'],
  }),

  sendShared('sends a message of a member', {
    seeds: groupReady,
    answer: ['ok', 8],
    changes: [...asGroup, 'msg:-100777:8', 'outbox'],
    async after(client) {
      const [entry] = await client.xrange(keys.outbox(partitionOf(group)), '-', '+');
      expect([entry?.[0], entry?.[1][1]]).toEqual([`${base + 1}-0`, `${bot}`]);
    },
  }),
  sendShared('sends a message of a bot without updates to the other bots of the group', {
    seeds: groupOfBots,
    answer: ['ok', 8],
    changes: [...asGroup, 'msg:-100777:8'],
  }),
  sendShared('writes no outbox entry if no bot listens', {
    seeds: [open(group), seeds.chat(group), member()],
    answer: ['ok', 8],
    changes: [...asGroup, 'msg:-100777:8'],
  }),
  sendShared('answers an already applied request again', {
    seeds: [...groupReady, seeds.text(keys.request(partitionOf(group), 'r'), '6 1700000000 0')],
    answer: ['ok', '6', '1700000000'],
    changes: [],
  }),
  sendShared(
    'answers an already applied request again even if the sender left',
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
  sendShared('refuses a different run id', { seeds: groupReady, answer: ['stale_run'] }, { run: 'other' }),
  sendShared('refuses while the journal is full', {
    seeds: [...groupReady, ...full(group)],
    answer: ['journal_full'],
  }),
  sendShared('refuses while the outbox is full', {
    seeds: [...groupReady, outboxFull],
    answer: ['outbox_full'],
  }),
  sendShared('refuses while the outbox is full in bytes', {
    seeds: [...groupReady, ...outboxOfBytes(0)],
    answer: ['outbox_full'],
  }),
  sendShared('accepts a message once the first entries of the outbox were forwarded', {
    seeds: [...groupReady, ...outboxOfBytes(1)],
    answer: ['ok'],
    changes: [...asGroup, 'msg:-100777:8', 'outbox'],
    async after(client) {
      const at = keys.outbox(partitionOf(group));
      const [entry] = (await client.callBuffer('XREVRANGE', at, '+', '-', 'COUNT', '1')) as [
        Buffer,
        Buffer[],
      ][];
      expect(String(entry?.[0]).split('-')[1]).toBe(String(limits.outbox_bytes_max));
      // The fields of an outbox entry after the bots, the kind and the time.
      const bytes = (entry?.[1] ?? [])
        .filter((_, i) => i % 2 === 1 && i > 6)
        .reduce((n, b) => n + b.length, 0);
      expect(Number(await client.hget(keys.meta(partitionOf(group)), 'ow'))).toBe(
        limits.outbox_bytes_max + bytes,
      );
    },
  }),
  sendShared('reports a cold chat as missing', {
    seeds: [open(group), member()],
    answer: ['chat_missing', issued('T')],
  }),
  sendShared('reports a cold member as missing', {
    seeds: [open(group), seeds.chat(group)],
    answer: ['member_missing', issued('T')],
  }),
  sendShared('reports a member copied under an older incarnation as missing', {
    seeds: [open(group), seeds.chat(group), seeds.member(user, 'member', {}, 94)],
    answer: ['member_missing', issued('T')],
  }),
  sendShared('refuses a former member', {
    seeds: [open(group), seeds.chat(group), member('left')],
    answer: ['not_member', 'group'],
  }),
  sendShared('sends in a chat of two people', {
    seeds: [open(group), seeds.chat(group, { t: 'person' }), member()],
    answer: ['ok', 8],
    changes: [...asGroup, 'msg:-100777:8'],
  }),
  sendShared('refuses a message in a closed chat of two people', {
    seeds: [open(group), seeds.chat(group, { t: 'closed' }), member()],
    answer: ['chat_closed'],
  }),
  sendShared('refuses somebody else in a closed chat as in an open one', {
    seeds: [open(group), seeds.chat(group, { t: 'closed' }), member('none')],
    answer: ['not_member', 'closed'],
  }),
  sendShared(
    'reports a cold replied-to message as missing',
    { seeds: groupReady, answer: ['reply_missing', issued('T')] },
    { reply_to: '5' },
  ),
  sendShared(
    'refuses a reply to a deleted message',
    { seeds: [...groupReady, seeds.message(group, 5, deleted)], answer: ['reply_not_found'] },
    { reply_to: '5' },
  ),
];

export const sendCases: readonly Case[] = [...directSends, ...sends];

/** Calls of the scripts that edit a message, and every status they can end in. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageFlags, messageKinds, pack, unpackMessage } from '../../src/store/core/codec.js';
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import {
  asDirect,
  asGroup,
  at,
  deleted,
  full,
  groupOfBots,
  groupReady,
  id,
  inQueue,
  member,
  old,
  open,
  outboxFull,
} from './message_world.js';
import { base, bot, direct, group, keyboard, keys, partitionOf, record, seeds, user } from './world.js';

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
          edit("a bot's own message: the other bots of the group hear nothing", {
            seeds: [...groupOfBots, seeds.message(chat, id, own)],
            answer: ['ok'],
            changes: [...asGroup, `msg:${chatText(chat)}:7`],
          }),
          edit("a person edits a bot's message: its author alone hears it", {
            seeds: [
              open(chat),
              seeds.chat(chat, { b: `${bot},78` }),
              member('administrator', { can_edit_messages: true }),
              seeds.message(chat, id, { sender: bot }),
            ],
            answer: ['ok'],
            changes,
            async after(client: Redis) {
              const [entry] = await client.xrange(keys.outbox(partitionOf(chat)), '-', '+');
              expect(entry?.[1].slice(0, 2)).toEqual(['b', `${bot}`]);
            },
          }),
          edit('who left', { seeds: [...on(), member('kicked')], answer: ['not_member', 'group'] }),
          edit('a full outbox', { seeds: [...on(), outboxFull], answer: ['outbox_full'] }),
        ]),
  ];
}

export const editCases: readonly Case[] = [
  ...edits('messages/edit_direct'),
  ...edits('messages/edit_shared'),
];

import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { unpackMessage } from '../../src/store/core/codec.js';
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import {
  asDirect,
  asGroup,
  at,
  deleted,
  full,
  groupReady,
  id,
  member,
  old,
  open,
  post,
  prefixed,
} from './message_world.js';
import { base, direct, group, issued, keys, partitionOf, seeds, user } from './world.js';

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
  remove(direct, 'deletes a message for either side of a direct chat', {
    seeds: [open(direct), seeds.chat(direct), seeds.message(direct, id)],
    answer: ['ok'],
    changes: [...asDirect, `msg:${chatText(direct)}:7`],
    async after(client) {
      const [entry] = await client.xrangeBuffer(keys.journal(partitionOf(direct)), '-', '+');
      const found = (await client.getBuffer(keys.message(direct, id))) as Buffer;
      // The tombstone contains the date, which determines the partition of the message in Postgres.
      expect(entry?.[1]).toEqual([...['k', `msg:${chatText(direct)}:7`, 'i'].map(Buffer.from), found]);
      expect(unpackMessage(found)).toMatchObject({ kind: 0, version: base + 1 });
    },
  }),
  remove(group, 'deletes and unpins a pinned message', {
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
      const listed = log.map(([, [, before, , kind, , about]]) => [before, kind, about]);
      expect(listed).toEqual([
        [`${base}`, 'd', '7'],
        [`${base + 1}`, 'p', '0'],
      ]);
    },
  }),
  remove(group, 'deletes the sender’s own message', {
    seeds: groupMessage({ sender: user }),
    answer: ['ok'],
    changes: deletion,
  }),
  remove(group, 'deletes a message of another member with the right to do so', {
    seeds: [...groupMessage(), member('administrator', { can_delete_messages: true })],
    answer: ['ok'],
    changes: deletion,
  }),
  remove(group, 'deletes a message as the creator', {
    seeds: [...groupMessage(), member('creator')],
    answer: ['ok'],
    changes: deletion,
  }),
  remove(group, 'answers an already applied request again', {
    seeds: [...groupMessage(), seeds.text(at(group).request, '1')],
    answer: ['ok'],
    changes: [],
  }),
  remove(
    group,
    'refuses a different run id',
    { seeds: groupMessage(), answer: ['stale_run'] },
    { run: 'other' },
  ),
  remove(group, 'refuses when the journal’s reserve is used up', {
    seeds: [...groupMessage({ sender: user }), ...full(group, limits.journal_reserve)],
    answer: ['journal_full'],
  }),
  remove(group, 'reports a cold chat as missing', {
    seeds: [open(group)],
    answer: ['chat_missing', issued('T')],
  }),
  remove(group, 'reports a cold member as missing', {
    seeds: [open(group), seeds.chat(group), seeds.message(group, id)],
    answer: ['member_missing', issued('T')],
  }),
  remove(group, 'reports a cold message as missing', {
    seeds: groupReady,
    answer: ['message_missing', issued('T')],
  }),
  remove(group, 'refuses a former member', {
    seeds: [...groupMessage({ sender: user }), member('left')],
    answer: ['not_member', 'group'],
  }),
  remove(group, 'reports a deleted message as not found', {
    seeds: groupMessage(deleted),
    answer: ['not_found'],
  }),
  remove(
    group,
    'reports an id that was not given out as not found',
    { seeds: groupMessage(), answer: ['not_found'] },
    { message_id: '8' },
  ),
  remove(group, 'refuses a message of another member without the right', {
    seeds: [...groupMessage(), member('administrator', { can_edit_messages: true })],
    answer: ['cant_be_deleted'],
  }),
  remove(group, 'refuses a message older than 48 hours', {
    seeds: groupMessage({ sender: user, date: old }),
    answer: ['cant_be_deleted'],
  }),
];

const erase = (chat: ChatRef, what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'messages/erase', what, keys: prefixed(chat) },
  args: { chat: chatText(chat), age_ms: '0', token: 'T', items: [`${id}`, '', '1700000000'], ...args },
  ...more,
});
const erased = ['changes:-100777', 'chat:-100777', 'journal', 'meta', 'msg:-100777:7'];

const erasures: Case[] = [
  erase(group, 'deletes a hot message of any sender', {
    seeds: [open(group), seeds.chat(group), seeds.message(group, id)],
    answer: ['ok', 1],
    changes: erased.slice(1),
    async after(client) {
      const found = (await client.getBuffer(keys.message(group, id))) as Buffer;
      expect(unpackMessage(found)).toMatchObject({ kind: 0, version: base + 1 });
      // The deletion raises the version of the chat without an entry in the log. A reader that stopped at the previous
      // version thus notices a gap.
      expect(await client.hmget(keys.chat(group), 'v', 'c')).toEqual([`${base + 1}`, `${base + 1}`]);
      const journal = await client.xrangeBuffer(keys.journal(partitionOf(group)), '-', '+');
      expect(journal.map(([, entry]) => entry[3])).toEqual([found]);
    },
  }),
  erase(group, 'deletes a cold message and its ticket', {
    seeds: [open(group), seeds.chat(group), seeds.text(keys.ticket(keys.message(group, id)), 'other')],
    answer: ['ok', 1],
    changes: [...erased.slice(1), 'msg:-100777:7:ticket'],
    async after(client) {
      const found = (await client.getBuffer(keys.message(group, id))) as Buffer;
      expect(unpackMessage(found)).toMatchObject({ kind: 0, version: base + 1, date: 1_700_000_000 });
      expect(await client.exists(keys.ticket(keys.message(group, id)))).toBe(0);
    },
  }),
  erase(
    group,
    'deletes several messages and unpins the pinned one',
    {
      seeds: [open(group), seeds.chat(group, { pin: 6 }), seeds.message(group, 6), seeds.message(group, id)],
      answer: ['ok', 2],
      changes: [...erased, 'msg:-100777:6'].sort(),
      async after(client) {
        expect(await client.hget(keys.chat(group), 'pin')).toBe('0');
        const log = await client.xrange(keys.changes(group), '-', '+');
        // The log contains only the unpin, because a deletion has no entry in the log. The deletion’s version is one
        // lower than the version of the unpin.
        expect(log.map(([, [, before, , kind]]) => [before, kind])).toEqual([[`${base + 2}`, 'p']]);
      },
    },
    { items: ['6', '', '1700000000', '7', '', '1700000000'] },
  ),
  erase(
    group,
    'deletes a cold message that is a post',
    {
      seeds: [open(group), seeds.chat(group, { t: 'channel' })],
      answer: ['ok', 1],
      changes: [...erased.slice(1), `post:${post}`],
      async after(client) {
        expect(await client.hgetall(keys.post(post))).toMatchObject({ x: '1', u: '0' });
      },
    },
    { items: [`${id}`, `${post}`, '1700000000'] },
  ),
  erase(
    group,
    'leaves a hot message that is too young',
    { seeds: [open(group), seeds.chat(group), seeds.message(group, id)], answer: ['ok', 0], changes: [] },
    { age_ms: '3600000' },
  ),
  erase(group, 'changes nothing for a deleted message', {
    seeds: [open(group), seeds.chat(group), seeds.message(group, id, deleted)],
    answer: ['ok', 0],
    changes: [],
  }),
  erase(
    group,
    'changes nothing for an id that was not given out',
    { seeds: [open(group), seeds.chat(group)], answer: ['ok', 0], changes: [] },
    { items: ['8', '', '1700000000'] },
  ),
  erase(
    group,
    'refuses a different run id',
    { seeds: [open(group)], answer: ['stale_run'] },
    { run: 'other' },
  ),
  erase(group, 'refuses when the journal’s reserve is used up', {
    seeds: [...full(group, limits.journal_reserve), seeds.chat(group), seeds.message(group, id)],
    answer: ['journal_full'],
  }),
  erase(group, 'reports a cold chat as missing', {
    seeds: [open(group)],
    answer: ['chat_missing', issued('T')],
  }),
];

export const removalCases: readonly Case[] = [...removals, ...erasures];

/** Calls of the script that deletes a message, and every status it can end in. */
import { expect } from 'vitest';
import { unpackMessage } from '../../src/store/codec.js';
import { type ChatRef, chatText } from '../../src/store/keys.js';
import type { Case } from './cases.js';
import { asDirect, asGroup, at, deleted, full, groupReady, id, member, old, open } from './message_world.js';
import { base, direct, group, keys, partitionOf, seeds, user } from './world.js';

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

export const removalCases: readonly Case[] = removals;

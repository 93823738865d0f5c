import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageFlags, messageKinds, pack } from '../../src/store/core/codec.js';
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { full, home, type More, open, state, stream } from './update_world.js';
import {
  base,
  bot,
  direct,
  group,
  incarnation,
  issued,
  keyboard,
  keys,
  partitionOf,
  seeds,
  user,
} from './world.js';

const pressKeys = (chat: ChatRef) => {
  const partition = partitionOf(chat);
  const [message, member] = [keys.message(chat, 7), keys.member(chat.id, user)];
  return {
    ...{ meta: keys.meta(partition), journal: keys.journal(partition), outbox: keys.outbox(partition) },
    ...{
      chat: keys.chat(chat),
      ticket: keys.ticket(keys.chat(chat)),
      message,
      message_ticket: keys.ticket(message),
    },
    ...{ request: keys.request(partition, 'r'), queue_state: keys.queueState(bot), queue: keys.queue(bot) },
    ...{
      bot_channel: keys.botChannel(bot),
      due: keys.webhooksDue(home),
      query: keys.callbackQueries(partition),
      granted: keys.grantedEdits(chat, 7),
      member,
      member_ticket: keys.ticket(member),
    },
  };
};
const draftName = `draft:${chatText(direct)}`;
/** A draft that does not expire during the tests. */
const aDraft = (fields = {}) =>
  seeds.hash(keys.draft(direct), {
    ...{ i: 4, t: Date.now() + 600_000, s: 7, f: 's', c: 'C', x: '' },
    ...fields,
  });
const stop = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'updates/stop_draft', what },
  keys: { ...pressKeys(direct), channel: keys.chatChannel(direct), draft: keys.draft(direct) },
  args: { chat: chatText(direct), id: '4', from: 'f', token: 'T', ...args },
  ...more,
});
const stoppable = [open(), seeds.chat(direct), seeds.queue()];
const stops: readonly Case[] = [
  stop('queues an update and removes the text', {
    seeds: [...stoppable, aDraft()],
    answer: ['ok', 0],
    changes: [draftName, 'meta', state, stream],
    async after(client) {
      expect(await client.hmget(keys.draft(direct), 'x', 'c')).toEqual(['1', '']);
      const [, fields] = (await client.xrange(keys.queue(bot), '-', '+'))[0] as [string, string[]];
      expect(fields.slice(0, 2)).toEqual(['k', 'stopped_message_generation']);
      expect(fields.slice(4, 8)).toEqual(['c', chatText(direct), 'm', '4']);
    },
  }),
  stop('keeps the text of a draft that stays visible', {
    seeds: [...stoppable, aDraft({ f: 'sk' })],
    answer: ['ok', 0],
    changes: [draftName, 'meta', state, stream],
    after: async (client) => expect(await client.hget(keys.draft(direct), 'c')).toBe('C'),
  }),
  stop('stops a draft once', { seeds: [...stoppable, aDraft({ x: 1 })], answer: ['ok', 0], changes: [] }),
  stop('refuses without a draft', { seeds: stoppable, answer: ['not_found'] }),
  stop('refuses a user who may not write to the bot', {
    seeds: [open(), seeds.chat(direct, { w: '9-' }), seeds.queue({ wp: 'owner', wv: 9 }), aDraft()],
    answer: ['cant_write'],
    changes: [],
  }),
  stop('reports missing access for a chat without a stored answer', {
    seeds: [open(), seeds.chat(direct), seeds.queue({ wp: 'owner', wv: 9 }), aDraft()],
    answer: ['access_missing', incarnation],
    changes: [],
  }),
  stop('refuses another draft', { seeds: [...stoppable, aDraft()], answer: ['not_found'] }, { id: '5' }),
  stop('refuses a draft without a button to stop it', {
    seeds: [...stoppable, aDraft({ f: '' })],
    answer: ['not_found'],
  }),
  stop(
    'refuses a different run id',
    { seeds: [...stoppable, aDraft()], answer: ['stale_run'] },
    { run: 'other' },
  ),
  stop('refuses while the journal is full', {
    seeds: [...stoppable, aDraft(), ...full()],
    answer: ['journal_full'],
  }),
  stop('refuses a user who blocked the bot', {
    seeds: [open(), seeds.chat(direct, { t: 'blocked' }), seeds.queue(), aDraft()],
    answer: ['blocked'],
  }),
  stop('leaves a ticket if the chat is missing', {
    seeds: [open(), aDraft()],
    answer: ['chat_missing', issued('T')],
    changes: [`chat:${chatText(direct)}:ticket`],
  }),
  stop('reports that the queue is missing', {
    seeds: [open(), seeds.chat(direct), aDraft()],
    answer: ['queue_missing'],
  }),
];

function presses(script: 'updates/press_direct' | 'updates/press_shared'): Case[] {
  const chat = script === 'updates/press_direct' ? direct : group;
  const [isDirect, partition] = [chat === direct, partitionOf(chat)];
  const digits = String(partition).padStart(3, '0');
  const press = (what: string, more: More, args = {}, id = 7): Case => ({
    ...{ script, what, keys: pressKeys(chat) },
    args: {
      press: pack([chatText(chat), `${id}`, `${user}`, 'go', digits, true]),
      token: 'T',
      from: 'f',
      extra: 'x',
      ...args,
    },
    ...more,
  });
  const chatSeed = seeds.chat(chat, isDirect ? {} : { b: `${bot}` });
  const ready = [open(partition), chatSeed, isDirect ? seeds.queue() : seeds.member(user, 'member')];
  const on = (given = {}) => [...ready, seeds.message(chat, 7, { markup: keyboard('go'), ...given })];
  const query = `${base + 1}${digits}`;
  const changes = [`callback_query:${query}`, 'meta', 'req:r', ...(isDirect ? [stream, state] : ['outbox'])];
  const granted = `granted_edits:${chatText(chat)}:7`;
  return [
    press('queues a press of a button', {
      seeds: on(),
      answer: ['ok', query],
      changes: [...changes, granted],
      async after(client) {
        expect(await client.get(keys.callbackQueries(partition) + query)).toBe(
          `${chatText(chat)} ${user} ${bot}`,
        );
        expect(await client.pttl(keys.callbackQueries(partition) + query)).toBeGreaterThan(
          limits.callback_query_age_ms_max - 5_000,
        );
        expect(await client.get(keys.grantedEdits(chat, 7))).toBe('1');
        expect(await client.pttl(keys.grantedEdits(chat, 7))).toBeGreaterThan(
          limits.granted_edit_ttl_ms - 5_000,
        );
      },
    }),
    press('grants at most two edits', {
      seeds: [...on(), seeds.text(keys.grantedEdits(chat, 7), '2')],
      answer: ['ok', query],
      changes: [...changes, granted],
      after: async (client) => expect(await client.get(keys.grantedEdits(chat, 7))).toBe('2'),
    }),
    press(
      'grants no edit if the setting is off',
      {
        seeds: on(),
        answer: ['ok', query],
        changes,
        after: async (client) => expect(await client.exists(keys.grantedEdits(chat, 7))).toBe(0),
      },
      { press: pack([chatText(chat), '7', `${user}`, 'go', digits, false]) },
    ),
    press('answers an already applied request again', {
      seeds: [...on(), seeds.text(keys.request(partition, 'r'), '123')],
      answer: ['ok', '123'],
      changes: [],
    }),
    press('refuses a different run id', { seeds: on(), answer: ['stale_run'] }, { run: 'other' }),
    press('refuses while the journal is full', {
      seeds: [...on(), ...full(partition)],
      answer: ['journal_full'],
    }),
    press('reports a cold chat as missing', {
      seeds: [open(partition)],
      answer: ['chat_missing', issued('T')],
    }),
    press('reports a cold message as missing', { seeds: ready, answer: ['message_missing', issued('T')] }),
    press('refuses an id that was not given out', { seeds: on(), answer: ['not_found'] }, {}, 8),
    press('refuses a deleted message', { seeds: on({ kind: messageKinds.deleted }), answer: ['not_found'] }),
    press('refuses a button that the message does not have', {
      seeds: on({ markup: keyboard('stop') }),
      answer: ['no_button'],
    }),
    press('refuses a message without a keyboard', { seeds: on({ markup: null }), answer: ['no_button'] }),
    press('reports the bot of an inline message', {
      seeds: on({ sender: user, flags: messageFlags.inline, origin: { via: { id: 77, n: 'V' } } }),
      answer: ['inline', '77'],
    }),
    press('refuses a message of a person', { seeds: on({ sender: user }), answer: ['no_button'] }),
    ...(isDirect
      ? [
          press('refuses a user who blocked the bot', {
            seeds: [...on(), seeds.chat(chat, { t: 'blocked' })],
            answer: ['blocked'],
          }),
          press('reports a missing queue', {
            seeds: [open(partition), chatSeed, seeds.message(chat, 7, { markup: keyboard('go') })],
            answer: ['queue_missing'],
          }),
        ]
      : [
          press('reports a cold member as missing', {
            seeds: [open(partition), chatSeed],
            answer: ['member_missing', issued('T')],
          }),
          press('refuses a former member', {
            seeds: [...on(), seeds.member(user, 'left')],
            answer: ['not_member', 'group'],
          }),
          press('refuses a press for a bot that left', {
            seeds: [...on(), seeds.chat(group, { b: `1${bot}` })],
            answer: ['no_button'],
          }),
          press('refuses while the outbox is full', {
            seeds: [...on(), seeds.stream(keys.outbox(partition), limits.outbox_length_max)],
            answer: ['outbox_full'],
          }),
        ]),
  ];
}

export const pressCases: readonly Case[] = [
  ...presses('updates/press_direct'),
  ...presses('updates/press_shared'),
  ...stops,
];

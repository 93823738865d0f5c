/**
 * Test cases for the scripts that check a bot's write policy. The cases differ in the stored policy and in the stored
 * decision of the chat.
 */
import { expect } from 'vitest';
import { pack, packMessageTail } from '../../src/store/core/codec.js';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import {
  base,
  bot,
  direct,
  incarnation,
  keyboard,
  keys,
  partitionOf,
  type Seed,
  seeds,
  user,
} from './world.js';

const home = partitionOf(direct);
const name = chatText(direct);
const chat = keys.chat(direct);
const all = {
  ...{ meta: keys.meta(home), journal: keys.journal(home), chat, ticket: keys.ticket(chat) },
  ...{ request: keys.request(home, 'r'), changes: keys.changes(direct), channel: keys.chatChannel(direct) },
  ...{ queue_state: keys.queueState(bot), queue: keys.queue(bot), bot_channel: keys.botChannel(bot) },
  ...{ due: keys.webhooksDue(home), sibling: keys.messages(direct), query: keys.callbackQueries(home) },
};
const one = {
  ...all,
  message: keys.message(direct, 7),
  message_ticket: keys.ticket(keys.message(direct, 7)),
  granted: keys.grantedEdits(direct, 7),
  ...{ pending: keys.pendingEdits(home), edits_due: keys.editsDue(home) },
};
const every = { ...all, message: keys.messages(direct) };
const tail = packMessageTail({
  ...{ sender: user, kind: 1, flags: 0, content: { text: 'new' }, markup: null, origin: {} },
} as const);
const from = pack({ id: user });
const digits = String(home).padStart(3, '0');
const press = ['7', `${user}`, 'go', digits, false];
const edited = ['7', `${user}`, 'text'];

const state = `queue_state:${bot}`;
const inChat = [`chat:${name}`, `changes:${name}`, 'journal', 'meta', 'req:r'];

/**
 * The scripts that write to a bot, with the arguments of a call by a person. If the bot itself can make the call,
 * `byBot` contains the arguments that differ.
 */
const ways = [
  {
    script: 'messages/send_to_bot',
    keys: every,
    args: { chat: name, tails: [tail], reply_to: '', from, token: 'T', keep: 'r' },
    ...{ byBot: null, toBot: true, changes: [...inChat, `msg:${name}:8`] },
  },
  {
    script: 'messages/send_to_bot',
    keys: every,
    args: { chat: name, tails: [tail, tail], reply_to: '', from, token: 'T', keep: '' },
    ...{ byBot: null, toBot: true, changes: [...inChat, `msg:${name}:8`, `msg:${name}:9`] },
  },
  {
    script: 'messages/edit_direct',
    keys: one,
    args: { edit: pack([name, ...edited]), content: pack({ text: 'x' }), markup: '', from, token: 'T' },
    ...{ byBot: { from: '' }, toBot: false, changes: [...inChat, `msg:${name}:7`] },
  },
  {
    script: 'messages/pin_direct',
    keys: one,
    args: { pin: pack([name, '7', `${user}`]), tail, from, notify: '', token: 'T' },
    ...{ byBot: { pin: pack([name, '7', `${bot}`]) }, toBot: true },
    changes: [...inChat, `msg:${name}:8`],
  },
  {
    script: 'updates/press_direct',
    keys: one,
    args: { press: pack([name, ...press]), from, extra: 'x', token: 'T' },
    ...{ byBot: null, toBot: true },
    changes: ['meta', `callback_query:${base + 1}${digits}`, 'req:r'],
  },
] as const;

const set = (what: string, more: Pick<Case, 'answer'> & Partial<Case>, args = {}): Case => ({
  ...{ script: 'updates/set_access', what, ...more },
  keys: { meta: keys.meta(home), state: keys.queueState(bot), chat: keys.chatRoot(home) },
  args: { known: `${incarnation}`, version: '6', policy: 'selected', chat: '', may: false, ...args },
});
const holds =
  (
    fields: Readonly<Record<string, string>>,
    ofChat: Readonly<Record<string, string>> = {},
  ): NonNullable<Case['after']> =>
  async (client) => {
    expect(await client.hgetall(keys.queueState(bot))).toMatchObject(fields);
    expect(await client.hgetall(chat)).toMatchObject(ofChat);
  };
const closing = (what: string, args = {}) => ({
  ...{ script: 'updates/close_queue' as const, what },
  keys: {
    ...{ meta: keys.meta(home), state: keys.queueState(bot) },
    ...{ queue: keys.queue(bot), marks: keys.queueMarks(bot) },
    ...{ routes: keys.routes(bot), due: keys.webhooksDue(home) },
  },
  args: { version: '9', ...args },
});
const opened = [seeds.open(home), seeds.queue()];

export const writeAccessCases: Case[] = [
  ...ways.flatMap(({ byBot, changes, toBot, ...way }): Case[] => {
    const pressed = way.script === 'updates/press_direct';
    const message = seeds.message(direct, 7, pressed ? { markup: keyboard('go') } : { sender: user });
    const of = (policy: Record<string, string | number>, known: Record<string, string> = {}): Seed[] => [
      seeds.open(home),
      seeds.chat(direct, known),
      seeds.queue({ wv: 5, ...policy }),
      message,
    ];
    const missing = ['access_missing', incarnation];
    const refused = (what: string, seeds: Seed[], answer: readonly unknown[]): Case => ({
      ...{ ...way, what, seeds, answer },
    });
    const passes = (what: string, seeds: Seed[], args = {}, received = true): Case => ({
      ...{ ...way, args: { ...way.args, ...args }, what, seeds, answer: ['ok'] },
      changes: received ? [...changes, `queue:${bot}`, state] : changes,
    });
    return [
      passes('lets a selected person write', of({ wp: 'selected' }, { w: '5+' })),
      refused('refuses a person who was not selected', of({ wp: 'selected' }, { w: '5-' }), ['cant_write']),
      refused('refuses a person who is not the owner', of({ wp: 'owner' }, { w: '5-' }), ['cant_write']),
      refused('reports missing access for a chat without a stored answer', of({ wp: 'owner' }), missing),
      refused(
        'reports missing access if the stored answer is older than the policy',
        of({ wp: 'selected' }, { w: '4+' }),
        missing,
      ),
      refused(
        'reports missing access if the policy has a former incarnation',
        of({ wp: 'all', wi: incarnation - 1 }),
        missing,
      ),
      passes('lets every person write under the policy `all`', of({ wp: 'all' }, { w: '5-' })),
      ...(byBot ? [passes('lets the bot write', of({ wp: 'owner' }, { w: '5-' }), byBot, toBot)] : []),
    ];
  }),
  set('stores the first policy', {
    seeds: [seeds.open(home), seeds.hash(keys.queueState(bot), { seq: 41 })],
    answer: ['ok'],
    changes: [state],
    after: holds({ wi: `${incarnation}`, wv: '6', wp: 'selected', seq: '41' }),
  }),
  set('replaces an earlier policy', {
    seeds: opened,
    answer: ['ok'],
    changes: [state],
    after: holds({ wv: '6', wp: 'selected' }),
  }),
  set(
    'keeps a later policy, and does not store an answer that was read for an earlier policy',
    { seeds: [...opened, seeds.chat(direct)], answer: ['ok'], changes: [] },
    { version: '4', chat: name, may: true },
  ),
  set('replaces a policy of a former incarnation with the policy in Postgres', {
    seeds: [seeds.open(home), seeds.queue({ wi: incarnation - 1, wv: 9 })],
    answer: ['ok'],
    changes: [state],
    after: holds({ wi: `${incarnation}`, wv: '6' }),
  }),
  set(
    'stores in the chat whether its person may write',
    {
      seeds: [...opened, seeds.chat(direct)],
      answer: ['ok'],
      changes: [`chat:${name}`],
      after: holds({ wp: 'all' }, { w: '5+' }),
    },
    { version: '5', chat: name, may: true },
  ),
  set(
    'stores that a person may not write',
    {
      seeds: [...opened, seeds.chat(direct)],
      answer: ['ok'],
      changes: [`chat:${name}`, state],
      after: holds({ wp: 'selected' }, { w: '6-' }),
    },
    { chat: name },
  ),
  set('creates no chat', { seeds: opened, answer: ['ok'], changes: [state] }, { chat: name }),
  set(
    'refuses data that was read from Postgres before Redis lost its latest writes',
    { seeds: opened, answer: ['moved', incarnation] },
    { known: `${incarnation - 1}` },
  ),
  {
    ...closing('removes a queue with pending updates'),
    seeds: [...opened, seeds.entry(41), seeds.hash(keys.queueMarks(bot), { 3: 7 })],
    answer: ['ok'],
    changes: [`queue:${bot}`, `queue_marks:${bot}`, state],
    async after(client) {
      await holds({ mask: '0', bytes: '0', wp: 'gone', wv: '9' })(client);
      expect(await client.pttl(keys.queueState(bot))).toBeGreaterThan(0);
    },
  },
  { ...closing('accepts a missing queue'), seeds: [seeds.open(home)], answer: ['ok'], changes: [] },
  { ...closing('refuses a different run id', { run: 'other' }), seeds: opened, answer: ['stale_run'] },
  set('refuses a different run id', { seeds: opened, answer: ['stale_run'] }, { run: 'other' }),
];

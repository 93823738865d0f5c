/** Calls of the scripts below updates/ and every status they can end in. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageKinds, pack } from '../../src/store/codec.js';
import { type ChatRef, chatText } from '../../src/store/keys.js';
import type { Case } from './cases.js';
import { base, bot, direct, group, keyboard, keys, partitionOf, type Seed, seeds, user } from './world.js';

const home = partitionOf(direct);
const open = (partition = home, fields = {}) => seeds.open(partition, fields);
const full = (partition = home): Seed[] => [
  open(partition, { hw: 1 }),
  seeds.stream(keys.journal(partition), 1),
];
const queue = {
  ...{
    meta: keys.meta(home),
    journal: keys.journal(home),
    state: keys.queueState(bot),
    queue: keys.queue(bot),
  },
  ...{ marks: keys.queueMarks(bot), channel: keys.botChannel(bot), due: keys.webhooksDue(home) },
};
const state = `queue_state:${bot}`;
const stream = `queue:${bot}`;
type More = Partial<Case> & Pick<Case, 'answer'>;

const update = (version: number, value = 'x', kind = ['1', 'message']) => [
  `${version}`,
  ...kind,
  '-100777',
  value,
  'r',
  'f',
  'p',
  '',
  '',
];
const accept = (what: string, updates: string[], more: More, args = {}): Case => ({
  ...{
    script: 'updates/accept_forwarded',
    what,
    keys: queue,
    args: { bot: `${bot}`, source: '3', updates, ...args },
  },
  ...more,
});
const accepts: Case[] = [
  accept('new ones, in order', [...update(base + 1, 'a'), ...update(base + 2, 'b')], {
    seeds: [open(), seeds.queue()],
    answer: ['ok', 2],
    changes: [stream, state, `queue_marks:${bot}`],
    async after(client) {
      const entries = await client.xrange(keys.queue(bot), '-', '+');
      expect(entries.map(([id, fields]) => [id, fields[7]])).toEqual([
        ['42-0', 'a'],
        ['43-0', 'b'],
      ]);
      expect(await client.hget(keys.queueMarks(bot), '3')).toBe(`${base + 2}`);
    },
  }),
  accept('again', [...update(base + 1), ...update(base + 2)], {
    seeds: [open(), seeds.queue(), seeds.hash(keys.queueMarks(bot), { 3: base + 1, 4: base + 9 })],
    answer: ['ok', 1],
    changes: [stream, state, `queue_marks:${bot}`],
  }),
  accept('nothing new', update(base + 1), {
    seeds: [open(), seeds.queue(), seeds.hash(keys.queueMarks(bot), { 3: base + 1 })],
    answer: ['ok', 0],
    changes: [],
  }),
  accept('a kind that the mask leaves out counts as taken', update(base + 1, 'x', ['64', 'chat_member']), {
    seeds: [open(), seeds.queue()],
    answer: ['ok', 1],
    changes: [`queue_marks:${bot}`],
  }),
  accept(
    'another run',
    update(base + 1),
    { seeds: [open(), seeds.queue()], answer: ['stale_run'] },
    { run: 'other' },
  ),
  accept('a full journal', update(base + 1), { seeds: [...full(), seeds.queue()], answer: ['journal_full'] }),
  accept('no queue', update(base + 1), { seeds: [open()], answer: ['queue_missing'] }),
  accept('a webhook is set: its doorbell is to be rung', update(base + 1), {
    seeds: [open(), seeds.queue({ hook: 7 })],
    answer: ['ok', 1, 1],
    changes: [stream, state, `queue_marks:${bot}`, 'webhooks_due'],
  }),
  accept('a webhook is set and was rung for lately', update(base + 1), {
    seeds: [open(), seeds.queue({ hook: 7, rung: Date.now() + 600_000 })],
    answer: ['ok', 1, 0],
    changes: [stream, state, `queue_marks:${bot}`, 'webhooks_due'],
  }),
  accept('a worker has the bot', update(base + 1), {
    seeds: [open(), seeds.queue({ hook: 7, leased: Date.now() + 60_000 })],
    answer: ['ok', 1, 0],
    changes: [stream, state, `queue_marks:${bot}`],
  }),
  accept('the receiver is down: nobody is to look before', update(base + 1), {
    seeds: [open(), seeds.queue({ hook: 7, hold: 9_999_999_999_999 })],
    answer: ['ok', 1, 0],
    changes: [stream, state, `queue_marks:${bot}`, 'webhooks_due'],
    async after(client) {
      expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBe('9999999999999');
    },
  }),
];

const look = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'updates/poll', what, keys: queue },
  args: { bot: `${bot}`, poll: 'mine', first: true, offset: '', limit: '100', mask: '', ...args },
  ...more,
});
const three = [open(), seeds.queue({ bytes: 300 }), seeds.entry(39), seeds.entry(40), seeds.entry(41)];
const ids = (rows: unknown) => (rows as [Buffer][]).map(([id]) => String(id));
const leaves =
  (...left: string[]) =>
  async (client: Redis) =>
    expect((await client.xrange(keys.queue(bot), '-', '+')).map(([id]) => id)).toEqual(left);
const polls: Case[] = [
  look('takes its place and reads', {
    seeds: three,
    answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '39-0,40-0,41-0')],
    changes: [state],
  }),
  look(
    'confirms below its offset',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [stream, state],
      after: leaves('40-0', '41-0'),
    },
    { offset: '40' },
  ),
  look(
    'confirms all',
    { seeds: three, answer: ['ok', []], changes: [stream, state], after: leaves() },
    { offset: '42' },
  ),
  look(
    'past the next update: confirms nothing',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [state],
      after: leaves('39-0', '40-0', '41-0'),
    },
    { offset: '43' },
  ),
  look(
    'keeps the last two',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [stream, state],
      after: leaves('40-0', '41-0'),
    },
    { offset: '-2' },
  ),
  look(
    'keeps more than there are',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [state],
      after: leaves('39-0', '40-0', '41-0'),
    },
    { offset: '-9' },
  ),
  look(
    'a new mask',
    {
      seeds: three,
      answer: ['ok', expect.anything()],
      changes: [state],
      after: async (client) => expect(await client.hget(keys.queueState(bot), 'mask')).toBe('5'),
    },
    { mask: '5' },
  ),
  look(
    'looks again',
    { seeds: [...three, seeds.queue({ poll: 'mine' })], answer: ['ok', expect.anything()], changes: [] },
    { first: false },
  ),
  look('what is over a day old is buried', {
    seeds: [
      open(),
      seeds.queue({ bytes: 300 }),
      seeds.entry(40, { t: `${Date.now() - limits.queue_age_ms_max - 1_000}` }),
      seeds.entry(41),
    ],
    answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '41-0')],
    changes: [stream, state, 'journal', 'meta'],
    async after(client) {
      const [entry] = await client.xrange(keys.journal(home), '-', '+');
      expect([entry?.[0], entry?.[1][1]]).toEqual([`${base + 1}-0`, `dead:${bot}:40`]);
    },
  }),
  look('another run', { seeds: three, answer: ['stale_run'] }, { run: 'other' }),
  look('no queue', { seeds: [open()], answer: ['queue_missing'] }),
  look('a webhook is set', { seeds: [...three, seeds.queue({ hook: 'w' })], answer: ['webhook_active'] }),
  look(
    'a webhook was set meanwhile',
    { seeds: [...three, seeds.queue({ hook: 'w', poll: 'mine' })], answer: ['terminated_by_webhook'] },
    { first: false },
  ),
  look('a webhook was just deleted: what is open may still be acknowledged', {
    seeds: [...three, seeds.queue({ leased: Date.now() + 60_000 })],
    answer: ['ok', []],
    changes: [state],
  }),
  look(
    'another took its place',
    { seeds: [...three, seeds.queue({ poll: 'theirs' })], answer: ['terminated'] },
    { first: false, offset: '42' },
  ),
];

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
      member,
      member_ticket: keys.ticket(member),
    },
  };
};
function presses(script: 'updates/press_direct' | 'updates/press_shared'): Case[] {
  const chat = script === 'updates/press_direct' ? direct : group;
  const [isDirect, partition] = [chat === direct, partitionOf(chat)];
  const digits = String(partition).padStart(3, '0');
  const press = (what: string, more: More, args = {}, id = 7): Case => ({
    ...{ script, what, keys: pressKeys(chat) },
    args: {
      press: pack([chatText(chat), `${id}`, `${user}`, 'go', digits, 'T']),
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
  return [
    press('a button', {
      seeds: on(),
      answer: ['ok', query],
      changes: ['meta', `callback_query:${query}`, 'req:r', ...(isDirect ? [stream, state] : ['outbox'])],
      async after(client) {
        expect(await client.get(keys.callbackQueries(partition) + query)).toBe(
          `${chatText(chat)} ${user} ${bot}`,
        );
        expect(await client.pttl(keys.callbackQueries(partition) + query)).toBeGreaterThan(
          limits.callback_query_age_ms_max - 5_000,
        );
      },
    }),
    press('a request that was applied', {
      seeds: [...on(), seeds.text(keys.request(partition, 'r'), '123')],
      answer: ['ok', '123'],
      changes: [],
    }),
    press('another run', { seeds: on(), answer: ['stale_run'] }, { run: 'other' }),
    press('a full journal', { seeds: [...on(), ...full(partition)], answer: ['journal_full'] }),
    press('a cold chat', { seeds: [open(partition)], answer: ['chat_missing', 'T'] }),
    press('a cold message', { seeds: ready, answer: ['message_missing', 'T'] }),
    press('what is not yet there', { seeds: on(), answer: ['not_found'] }, {}, 8),
    press('a deleted message', { seeds: on({ kind: messageKinds.deleted }), answer: ['not_found'] }),
    press('another button', { seeds: on({ markup: keyboard('stop') }), answer: ['no_button'] }),
    press('no keyboard', { seeds: on({ markup: null }), answer: ['no_button'] }),
    press("a person's message", { seeds: on({ sender: user }), answer: ['no_button'] }),
    ...(isDirect
      ? [
          press('a user who blocked the bot', {
            seeds: [...on(), seeds.chat(chat, { t: 'blocked' })],
            answer: ['blocked'],
          }),
          press('no queue', {
            seeds: [open(partition), chatSeed, seeds.message(chat, 7, { markup: keyboard('go') })],
            answer: ['queue_missing'],
          }),
        ]
      : [
          press('a cold member', { seeds: [open(partition), chatSeed], answer: ['member_missing', 'T'] }),
          press('who left', {
            seeds: [...on(), seeds.member(user, 'left')],
            answer: ['not_member', 'group'],
          }),
          press('a bot that left', {
            seeds: [...on(), seeds.chat(group, { b: `1${bot}` })],
            answer: ['no_button'],
          }),
          press('a full outbox', {
            seeds: [...on(), seeds.stream(keys.outbox(partition), limits.outbox_length_max)],
            answer: ['outbox_full'],
          }),
        ]),
  ];
}

const answer = (what: string, more: More, args = {}): Case => ({
  script: 'updates/answer_query',
  what,
  keys: {
    ...{ meta: keys.meta(home), query: `${keys.callbackQueries(home)}9`, request: keys.request(home, 'r') },
    ...{ chat: keys.chatRoot(home), changes: keys.changesRoot(home), channel: keys.chatChannelRoot(home) },
  },
  args: { id: '9', bot: `${bot}`, answer: 'a', ...args },
  ...more,
});
const asked = seeds.text(`${keys.callbackQueries(home)}9`, `${chatText(direct)} ${user} ${bot}`, 60_000);
const answered = ['meta', 'callback_query:9', 'req:r', `changes:${chatText(direct)}`];
const outboxKeys = { outbox: keys.outbox(home) };
const listed = { state: keys.queueStateRoot(home), queue: keys.queueRoot(home) };

export const updateCases: Case[] = [
  ...accepts,
  ...polls,
  ...presses('updates/press_direct'),
  ...presses('updates/press_shared'),
  answer('a hot chat', {
    seeds: [open(), asked, seeds.chat(direct)],
    answer: ['ok'],
    changes: [...answered, `chat:${chatText(direct)}`],
  }),
  answer('a cold chat stays cold', { seeds: [open(), asked], answer: ['ok'], changes: answered }),
  answer('a request that was applied', {
    seeds: [open(), seeds.text(keys.request(home, 'r'), '1')],
    answer: ['ok'],
    changes: [],
  }),
  answer('another run', { seeds: [open(), asked], answer: ['stale_run'] }, { run: 'other' }),
  answer('a closed query', { seeds: [open()], answer: ['too_old'] }),
  answer("another bot's query", { seeds: [open(), asked], answer: ['too_old'] }, { bot: '1' }),
  {
    script: 'updates/info',
    what: 'a queue',
    keys: queue,
    args: {},
    seeds: three,
    answer: ['ok', 3, '63', null, null, null, expect.any(Number)],
    changes: [],
  },
  {
    script: 'updates/info',
    what: 'no queue',
    keys: queue,
    args: {},
    answer: ['ok', 0, null, null, null, null],
    changes: [],
  },
  {
    script: 'updates/open_queue',
    what: 'none yet',
    keys: queue,
    args: { start: '9', mask: '63' },
    seeds: [open()],
    answer: ['ok', 1],
    changes: [state],
  },
  {
    script: 'updates/open_queue',
    what: 'one is open',
    keys: queue,
    args: { start: '9', mask: '1' },
    seeds: [open(), seeds.queue()],
    answer: ['ok', 0],
    changes: [],
  },
  {
    ...{ script: 'updates/peek', what: 'each reason', keys: listed, changes: [] },
    args: { polls: [`${bot}`, 'mine', '77', 'old', '78', 'calm'] },
    seeds: [
      ...three,
      seeds.queue({ poll: 'mine' }),
      seeds.hash(`${keys.queueStateRoot(home)}77`, { poll: 'new' }),
      seeds.hash(`${keys.queueStateRoot(home)}78`, { poll: 'calm' }),
    ],
    answer: ['ok', [Buffer.from('mine'), Buffer.from('old')]],
  },
  {
    ...{
      script: 'updates/read_outbox',
      what: 'the prefix',
      keys: outboxKeys,
      args: { after: '', limit: '2' },
      changes: [],
    },
    ...{
      seeds: [seeds.stream(keys.outbox(home), 3)],
      answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '1-0,2-0')],
    },
  },
  {
    ...{
      script: 'updates/read_outbox',
      what: 'behind an entry',
      keys: outboxKeys,
      args: { after: '1-0', limit: '2' },
      changes: [],
    },
    ...{
      seeds: [seeds.stream(keys.outbox(home), 4)],
      answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '2-0,3-0')],
    },
  },
  {
    ...{
      script: 'updates/trim_outbox',
      what: 'up to the last',
      keys: outboxKeys,
      args: { last: '2-0' },
      changes: ['outbox'],
    },
    ...{ seeds: [seeds.stream(keys.outbox(home), 3)], answer: ['ok', 1] },
  },
  {
    ...{ script: 'updates/trim_outbox', what: 'late', keys: outboxKeys, args: { last: '2-0' }, changes: [] },
    ...{ seeds: [(client) => client.xadd(keys.outbox(home), '5-0', 'k', 'x')], answer: ['ok', 1] },
  },
];

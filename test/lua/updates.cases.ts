import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { full, home, ids, type More, open, queue, state, stream, three, update } from './update_world.js';
import { base, bot, direct, keys, run, seeds, user } from './world.js';

const accept = (what: string, updates: string[], more: More, args = {}): Case => ({
  ...{
    script: 'updates/accept_forwarded',
    what,
    keys: queue,
    args: { bot: `${bot}`, source: '3', expected: run, updates, ...args },
  },
  ...more,
});
const accepts: Case[] = [
  accept(
    'refuses updates that were read while the queue was in another Redis',
    update(base + 1, 'a'),
    { seeds: [open(), seeds.queue()], answer: ['moved'] },
    { expected: 'other' },
  ),
  accept('accepts new updates in order', [...update(base + 1, 'a'), ...update(base + 2, 'b')], {
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
  accept('accepts no update that was accepted before', [...update(base + 1), ...update(base + 2)], {
    seeds: [open(), seeds.queue(), seeds.hash(keys.queueMarks(bot), { 3: base + 1, 4: base + 9 })],
    answer: ['ok', 1],
    changes: [stream, state, `queue_marks:${bot}`],
  }),
  accept('accepts an update only once', update(base + 1), {
    seeds: [open(), seeds.queue(), seeds.hash(keys.queueMarks(bot), { 3: base + 1 })],
    answer: ['ok', 0],
    changes: [],
  }),
  accept(
    'counts an update that the mask leaves out as accepted',
    update(base + 1, 'x', ['64', 'chat_member']),
    {
      seeds: [open(), seeds.queue()],
      answer: ['ok', 1],
      changes: [`queue_marks:${bot}`],
    },
  ),
  accept(
    'accepts a new default kind for a bot without a list of kinds',
    update(base + 1, 'x', ['256', 'chat_join_request']),
    { seeds: [open(), seeds.queue()], answer: ['ok', 1], changes: [stream, state, `queue_marks:${bot}`] },
  ),
  accept(
    'refuses a different run id',
    update(base + 1),
    { seeds: [open(), seeds.queue()], answer: ['stale_run'] },
    { run: 'other' },
  ),
  accept('refuses when the journal’s reserve is used up', update(base + 1), {
    seeds: [...full(home, limits.journal_reserve), seeds.queue()],
    answer: ['journal_full'],
  }),
  accept('reports a missing queue', update(base + 1), { seeds: [open()], answer: ['queue_missing'] }),
  accept('wakes a worker if a webhook is set', update(base + 1), {
    seeds: [open(), seeds.queue({ hook: 7 })],
    answer: ['ok', 1, 1],
    changes: [stream, state, `queue_marks:${bot}`, 'webhooks_due'],
  }),
  accept('does not wake a worker twice within a short time', update(base + 1), {
    seeds: [open(), seeds.queue({ hook: 7, rung: Date.now() + 600_000 })],
    answer: ['ok', 1, 0],
    changes: [stream, state, `queue_marks:${bot}`, 'webhooks_due'],
  }),
  accept('wakes no other worker for a bot that is being served', update(base + 1), {
    seeds: [open(), seeds.queue({ hook: 7, leased: Date.now() + 600_000 })],
    answer: ['ok', 1, 0],
    changes: [stream, state, `queue_marks:${bot}`],
  }),
  accept('schedules no check before a failed receiver is due', update(base + 1), {
    seeds: [open(), seeds.queue({ hook: 7, hold: 9_999_999_999_999 })],
    answer: ['ok', 1, 0],
    changes: [stream, state, `queue_marks:${bot}`, 'webhooks_due'],
    async after(client) {
      expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBe('9999999999999');
    },
  }),
];

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
const outboxKeys = { meta: keys.meta(home), outbox: keys.outbox(home) };
const incarnation = `${Math.floor(base / limits.versions_per_incarnation)}`;
const listed = { state: keys.queueStateRoot(home), queue: keys.queueRoot(home) };

export const updateCases: Case[] = [
  ...accepts,
  answer('answers a query of a hot chat', {
    seeds: [open(), asked, seeds.chat(direct)],
    answer: ['ok'],
    changes: [...answered, `chat:${chatText(direct)}`],
  }),
  answer('answers a query of a cold chat without reading the chat', {
    seeds: [open(), seeds.log(direct), asked],
    answer: ['ok'],
    changes: answered,
  }),
  answer('answers an already applied request again', {
    seeds: [open(), seeds.text(keys.request(home, 'r'), '1')],
    answer: ['ok'],
    changes: [],
  }),
  answer('refuses a different run id', { seeds: [open(), asked], answer: ['stale_run'] }, { run: 'other' }),
  answer('refuses a closed query', { seeds: [open()], answer: ['too_old'] }),
  answer('refuses a query of another bot', { seeds: [open(), asked], answer: ['too_old'] }, { bot: '1' }),
  {
    script: 'updates/info',
    what: 'reports length, mask and settings of a queue',
    keys: queue,
    args: {},
    seeds: three,
    answer: ['ok', 3, '63', null, null, null, expect.any(Number), 0],
    changes: [],
  },
  {
    script: 'updates/info',
    what: 'reports the retry time of the first parked chat, or the retry time of the receiver if it is later',
    keys: queue,
    args: {},
    seeds: [
      ...three,
      (client) => client.zadd(keys.retries(bot), 900, 'b', 700, 'a'),
      seeds.hash(keys.queueState(bot), { hold: 800 }),
    ],
    answer: ['ok', 3, '63', null, null, null, expect.any(Number), 0, '800'],
    changes: [],
  },
  {
    script: 'updates/info',
    what: 'reports nothing without a queue',
    keys: queue,
    args: {},
    answer: ['ok', 0, null, null, null, null],
    changes: [],
  },
  {
    script: 'updates/open_queue',
    what: 'opens a queue if there is none',
    keys: { ...queue, routes: keys.routes(bot) },
    args: { known: incarnation, start: '9', mask: '63', hook: '12', set: '11', routes: '' },
    seeds: [open()],
    answer: ['ok', 1],
    changes: [state],
    after: async (client) =>
      expect(await client.hmget(keys.queueState(bot), 'mask', 'hook', 'hook_set', 'cur')).toEqual([
        '63',
        '12',
        '11',
        '0',
      ]),
  },
  {
    script: 'updates/open_queue',
    what: 'does not change an open queue',
    keys: { ...queue, routes: keys.routes(bot) },
    args: { known: '0', start: '9', mask: '1', hook: '12', set: '11', routes: '' },
    seeds: [open(), seeds.queue()],
    answer: ['ok', 0],
    changes: [],
  },
  {
    script: 'updates/open_queue',
    what: 'refuses settings that may be older than settings that Redis has lost',
    keys: { ...queue, routes: keys.routes(bot) },
    args: { known: `${Number(incarnation) - 1}`, start: '9', mask: '63', hook: '12', set: '11', routes: '' },
    seeds: [open()],
    answer: ['moved', Number(incarnation)],
    changes: [],
  },
  {
    script: 'updates/open_queue',
    what: 'refuses a different run id',
    keys: { ...queue, routes: keys.routes(bot) },
    args: { known: incarnation, start: '9', mask: '63', hook: '12', set: '11', routes: '', run: 'other' },
    seeds: [open()],
    answer: ['stale_run'],
    changes: [],
  },
  {
    ...{
      script: 'updates/peek',
      what: 'returns polls with updates and polls that were replaced',
      keys: listed,
      changes: [],
    },
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
      what: 'reads the first entries',
      keys: outboxKeys,
      args: { after: '', limit: '2' },
      changes: [],
    },
    ...{
      seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
      answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '1-0,2-0')],
    },
  },
  {
    ...{
      script: 'updates/read_outbox',
      what: 'reads the entries after a given one',
      keys: outboxKeys,
      args: { after: '1-0', limit: '2' },
      changes: [],
    },
    ...{
      seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 4)],
      answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '2-0,3-0')],
    },
  },
  {
    ...{
      script: 'updates/trim_outbox',
      what: 'removes entries up to the given one',
      keys: outboxKeys,
      args: { last: '2-0', incarnation },
      changes: ['outbox'],
    },
    ...{ seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)], answer: ['ok', 1] },
  },
  {
    ...{
      script: 'updates/trim_outbox',
      what: 'removes the outbox with its last entry',
      keys: outboxKeys,
      args: { last: '3-0', incarnation },
      changes: ['outbox'],
    },
    seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
    answer: ['ok', 0],
    after: async (client) => expect(await client.exists(keys.outbox(home))).toBe(0),
  },
  {
    ...{
      script: 'updates/trim_outbox',
      what: 'removes nothing if the trim is late',
      keys: outboxKeys,
      args: { last: '2-0', incarnation },
      changes: [],
    },
    ...{
      seeds: [seeds.open(home), (client) => client.xadd(keys.outbox(home), '5-0', 'k', 'x')],
      answer: ['ok', 1],
    },
  },
  {
    ...{ script: 'updates/read_outbox', what: 'refuses a different run id', keys: outboxKeys },
    args: { after: '', limit: '2', run: 'other' },
    seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
    answer: ['stale_run'],
  },
  {
    ...{ script: 'updates/trim_outbox', what: 'refuses a different run id', keys: outboxKeys },
    args: { last: '2-0', incarnation, run: 'other' },
    seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
    answer: ['stale_run'],
  },
  {
    ...{
      script: 'updates/trim_outbox',
      what: 'refuses to trim entries read under another incarnation',
      keys: outboxKeys,
    },
    args: { last: '2-0', incarnation: '94' },
    seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
    answer: ['moved'],
  },
];

/** Calls of the other scripts below updates/ and every status they can end in. */
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { full, home, ids, type More, open, queue, state, stream, three, update } from './update_world.js';
import { base, bot, direct, keys, seeds, user } from './world.js';

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
  accept('a journal whose reserve is used up', update(base + 1), {
    seeds: [...full(home, limits.journal_reserve), seeds.queue()],
    answer: ['journal_full'],
  }),
  accept('no queue', update(base + 1), { seeds: [open()], answer: ['queue_missing'] }),
  accept('a webhook is set: wakes a worker', update(base + 1), {
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
    seeds: [open(), seeds.queue({ hook: 7, leased: Date.now() + 600_000 })],
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
  answer('a hot chat', {
    seeds: [open(), asked, seeds.chat(direct)],
    answer: ['ok'],
    changes: [...answered, `chat:${chatText(direct)}`],
  }),
  answer('a cold chat stays cold', {
    seeds: [open(), seeds.log(direct), asked],
    answer: ['ok'],
    changes: answered,
  }),
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
    args: { start: '9', mask: '63', hook: '12', set: '11' },
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
    what: 'one is open',
    keys: queue,
    args: { start: '9', mask: '1', hook: '12', set: '11' },
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
      seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
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
      seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 4)],
      answer: ['ok', expect.toSatisfy((rows) => ids(rows).join() === '2-0,3-0')],
    },
  },
  {
    ...{
      script: 'updates/trim_outbox',
      what: 'up to the last',
      keys: outboxKeys,
      args: { last: '2-0', incarnation },
      changes: ['outbox'],
    },
    ...{ seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)], answer: ['ok', 1] },
  },
  {
    ...{
      script: 'updates/trim_outbox',
      what: 'late',
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
    ...{ script: 'updates/read_outbox', what: 'another run', keys: outboxKeys },
    args: { after: '', limit: '2', run: 'other' },
    seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
    answer: ['stale_run'],
  },
  {
    ...{ script: 'updates/trim_outbox', what: 'another run', keys: outboxKeys },
    args: { last: '2-0', incarnation, run: 'other' },
    seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
    answer: ['stale_run'],
  },
  {
    ...{
      script: 'updates/trim_outbox',
      what: 'a prefix that was read under another incarnation',
      keys: outboxKeys,
    },
    args: { last: '2-0', incarnation: '94' },
    seeds: [seeds.open(home), seeds.stream(keys.outbox(home), 3)],
    answer: ['moved'],
  },
];

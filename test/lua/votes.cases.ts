import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageKinds, pack, unpack, unpackMessage } from '../../src/store/core/codec.js';
import { chatText, postId, postNumber } from '../../src/store/core/keys.js';
import { type Poll, pollFields } from '../../src/store/core/poll_record.js';
import type { Case } from './cases.js';
import { at as messageAt } from './message_world.js';
import {
  base,
  bot,
  group,
  incarnation,
  issued,
  keyboard,
  keys,
  partitionOf,
  seconds,
  seeds,
  user,
} from './world.js';

const partition = partitionOf(group);
const poll = postId(partition, 1_800_000_000_000);
const place = `${partition}:${postNumber(poll)}`;
const key = keys.poll(poll);
const definition: Poll = { type: 'poll', id: `${poll}`, bot, question: 'Q', options: ['a', 'b'] };
const votedKey = (generation: string | number) => `${keys.voted(poll)}${generation}`;
const userTicket = keys.ticket(votedKey(user));

const at = {
  ...{ meta: keys.meta(partition), journal: keys.journal(partition), outbox: keys.outbox(partition) },
  ...{ poll: key, poll_ticket: keys.ticket(key), voted: keys.voted(poll), due: keys.pollsDue(partition) },
  ...{ user_ticket: userTicket, request: keys.request(partition, 'r') },
};
const open = seeds.open(partition);
const full = [seeds.open(partition, { hw: 1 }), seeds.stream(at.journal, 1)];
const crowded = seeds.stream(at.outbox, limits.outbox_length_max);

/** Seeds a poll in Redis. `fields` override its default values. */
const pollOf = (given: Partial<Poll> = {}, fields: Record<string, string | number> = {}) => {
  const list = pollFields([chatText(group), bot, { ...definition, ...given }]);
  const stored: Record<string, string | Buffer> = {};
  for (let i = 0; i < list.length; i += 2) stored[String(list[i])] = list[i + 1] as string | Buffer;
  return seeds.hash(key, { ...stored, v: base, u: 0, ...fields });
};
const deleted = seeds.hash(key, { c: chatText(group), x: 1, u: 0, v: base });
/** Seeds the answer of the person: the first option, in the current generation of the poll. */
const voted = seeds.hash(votedKey(5), { [user]: '0', n: 1, v: base });
const present = { g: 5, gt: Date.now(), u: 1, 'n:0': 1 };
const dueAt = (ms: number) => (client: Redis) => client.zadd(at.due, ms, `${poll}`);
const results = (...values: number[]) => pack(values).toString('latin1');
const stale = { answer: ['stale_run'] };
const other = { run: 'other' };

async function updates(client: Redis) {
  return (await client.xrangeBuffer(at.outbox, '-', '+')).map(([, list]) => {
    const fields = Object.fromEntries(
      Array.from({ length: list.length / 2 }, (_, i) => [String(list[2 * i]), list[2 * i + 1] as Buffer]),
    ) as Record<string, Buffer>;
    expect(unpackMessage(fields.r as Buffer).kind).toBe(messageKinds.deleted);
    return [...['b', 'k', 'c', 'm'].map((name) => String(fields[name])), unpack(fields.x as Buffer)];
  });
}
const journaled = async (client: Redis) =>
  (await client.xrangeBuffer(at.journal, '-', '+')).map(([, list]) => [
    String(list[1]),
    (list[3] as Buffer).length === 0 ? null : unpack(list[3] as Buffer),
  ]);

type More = Partial<Case> & Pick<Case, 'answer'>;

const create = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'votes/create', what, keys: at },
  args: {
    ...{ token: 'T', poll: `${poll}`, place, record: pack(['r']), closes_ms: '0' },
    ...{ fields: pollFields([chatText(group), bot, definition]), ...args },
  },
  ...more,
});
const drop = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'votes/drop', what, keys: at, args: { poll: `${poll}`, place, ...args } },
  ...more,
});
const fill = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'votes/fill', what, keys: at },
  args: {
    ...{
      token: issued('T'),
      ttl_ms: '60000',
      poll: `${poll}`,
      closes_ms: '0',
      fields: ['c', chatText(group), 'u', '0'],
    },
    ...args,
  },
  ...more,
});
const read = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'votes/read', what, keys: at, args: { token: 'T', who: `${user}`, ttl_ms: '60000', ...args } },
  ...more,
});
const cast = (
  what: string,
  more: More,
  { options = '0', act = 'vote', ...args }: Record<string, unknown> = {},
): Case => ({
  ...{ script: 'votes/cast', what, keys: at },
  args: {
    ...{ token: 'T', vote: pack([`${poll}`, place, `${user}`, act, options]), known: '-' },
    ...{ from: pack({ id: user }), ...args },
  },
  ...more,
});
const tell = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'votes/tell', what, keys: { ...at, poll: keys.pollRoot(partition) } },
  args: { token: 'T', limit: '2', gone: [], ...args },
  ...more,
});

const inPoll = ['journal', 'meta', `poll:${poll}`];
const inVote = [...inPoll, 'req:r'];
const soon = Date.now() + 3_600_000;

const creation: Case[] = [
  create('stores and journals a poll', {
    seeds: [open],
    answer: ['ok'],
    changes: inPoll,
    after: async (client) => {
      expect(await client.hmget(key, 'c', 'b', 'k', 'u', 'r')).toEqual([
        `${group.id}`,
        `${bot}`,
        '2',
        '0',
        'T',
      ]);
      expect(await journaled(client)).toEqual([[`poll:${place}`, ['r']]]);
    },
  }),
  create(
    'schedules the end of a poll',
    {
      seeds: [open],
      answer: ['ok'],
      changes: [...inPoll, 'polls_due'],
      after: async (client) => expect(Number(await client.zscore(at.due, `${poll}`))).toBe(soon),
    },
    { closes_ms: `${soon}` },
  ),
  create('does nothing in a second run', { seeds: [open, pollOf({}, { r: 'T' })], answer: ['ok'] }),
  create('refuses the id of another poll', { seeds: [open, pollOf({}, { r: 'U' })], answer: ['taken'] }),
  create('refuses while the journal is full', { seeds: full, answer: ['journal_full'] }),
  create('refuses a different run id', { seeds: [open], ...stale }, other),
  drop('replaces a poll by a tombstone', {
    seeds: [open, pollOf(), dueAt(soon)],
    answer: ['ok'],
    changes: [...inPoll, 'polls_due'],
    after: async (client) => {
      expect(await client.hget(key, 'x')).toBe('1');
      expect(await journaled(client)).toEqual([[`poll:${place}`, null]]);
    },
  }),
  drop('does nothing in a second run', { seeds: [open, deleted], answer: ['ok'] }),
  drop('refuses while the journal is full twice over', {
    seeds: [seeds.open(partition, { hw: 1 }), seeds.stream(at.journal, 2 * limits.journal_reserve)],
    answer: ['journal_full'],
  }),
  drop('refuses a different run id', { seeds: [open, pollOf()], ...stale }, other),
];

const reading: Case[] = [
  fill(
    'stores a poll, and schedules its end',
    {
      seeds: [open, seeds.text(at.poll_ticket, 'T')],
      answer: ['ok', 1],
      changes: ['meta', `poll:${poll}`, `poll:${poll}:ticket`, 'polls_due'],
      after: async (client) => expect(await client.pttl(key)).toBeGreaterThan(0),
    },
    { closes_ms: `${soon}` },
  ),
  fill('keeps a poll that is in Redis', {
    seeds: [open, pollOf(), seeds.text(at.poll_ticket, 'T')],
    answer: ['ok', 0],
  }),
  fill(
    'stores nothing under a ticket of an earlier incarnation',
    { seeds: [open, seeds.text(at.poll_ticket, 'T')], answer: ['ok', 0] },
    { token: issued('T', incarnation - 1) },
  ),
  fill('needs its ticket', { seeds: [open, seeds.text(at.poll_ticket, 'U')], answer: ['ok', 0] }),
  fill('refuses a different run id', { seeds: [open], ...stale }, other),
  read('returns the results and the vote', {
    seeds: [open, pollOf({}, present), voted],
    answer: ['ok', results(1, 0, 1, 0), '0'],
  }),
  read('returns no vote if Redis has all votes', {
    seeds: [open, pollOf()],
    answer: ['ok', results(0, 0, 0, 0), ''],
  }),
  read('leaves the vote to Postgres if some votes are only there', {
    seeds: [open, pollOf({}, { u: 3, 'n:0': 3, z: 1 })],
    answer: ['ok', results(3, 1, 3, 0), null],
  }),
  read(
    'reads no vote of a bot',
    { seeds: [open, pollOf({}, { u: 3 })], answer: ['ok', results(3, 0, 0, 0), ''] },
    { who: '0' },
  ),
  read('leaves a ticket for a cold poll', {
    seeds: [open],
    answer: ['poll_missing', issued('T')],
    changes: [`poll:${poll}:ticket`],
  }),
  read('refuses a deleted poll', { seeds: [open, deleted], answer: ['poll_gone'] }),
  read('refuses a different run id', { seeds: [open, pollOf()], ...stale }, other),
];

const casting: Case[] = [
  cast('stores the first vote, and schedules an update', {
    seeds: [open, pollOf()],
    answer: ['ok', results(1, 0, 1, 0), 0],
    changes: [...inVote, 'polls_due', `voted:${poll}:0`],
    after: async (client) => {
      expect(await client.hmget(votedKey(0), `${user}`, 'n')).toEqual(['0', '1']);
      expect(await journaled(client)).toEqual([
        [`vote:${place}:${user}`, ['0', expect.any(Number)]],
        [`results:${place}`, [1, 0, 1, 0]],
      ]);
    },
  }),
  cast(
    'changes a vote, and sends the answer in a poll that is not anonymous',
    {
      seeds: [open, pollOf({ named: true }, present), voted],
      answer: ['ok', results(1, 0, 0, 1), 1],
      changes: [...inVote, 'outbox', 'polls_due', `voted:${poll}:5`].sort(),
      after: async (client) =>
        expect(await updates(client)).toEqual([[`${bot}`, 'poll_answer', `${group.id}`, `${poll}`, ['1']]]),
    },
    { options: '1' },
  ),
  cast(
    'retracts a vote, and sends nothing without a bot',
    {
      seeds: [open, pollOf({ named: true }, present), voted],
      answer: ['ok', results(0, 0, 0, 0), 0],
      changes: [...inVote, `voted:${poll}:5`],
      after: async (client) => expect((await journaled(client))[0]).toEqual([`vote:${place}:${user}`, null]),
    },
    { options: '', from: Buffer.alloc(0) },
  ),
  cast('records only the request for the same vote', {
    seeds: [open, pollOf({}, present), voted],
    answer: ['ok', results(1, 0, 1, 0), 0],
    changes: ['req:r'],
  }),
  cast(
    'uses the vote in Postgres',
    {
      seeds: [open, pollOf({}, { u: 1, 'n:0': 1 }), seeds.text(userTicket, 'T')],
      answer: ['ok', results(1, 0, 0, 1), 0],
      changes: [...inVote, 'polls_due', `voted:${poll}:0`, `voted:${poll}:${user}:ticket`],
    },
    { options: '1', known: '0', token: issued('T') },
  ),
  cast(
    'ignores a vote that was read under a ticket of an earlier incarnation',
    {
      seeds: [open, pollOf({}, { u: 1, 'n:0': 1 }), seeds.text(userTicket, 'T')],
      answer: ['user_missing', issued('T')],
    },
    { options: '1', known: '0', token: issued('T', incarnation - 1) },
  ),
  cast('leaves a ticket if only Postgres knows the vote', {
    seeds: [open, pollOf({}, { u: 1, 'n:0': 1 })],
    answer: ['user_missing', issued('T')],
    changes: [`voted:${poll}:${user}:ticket`],
  }),
  cast(
    'refuses a second vote that is final',
    { seeds: [open, pollOf({ final: true }, present), voted], answer: ['vote_final'] },
    { options: '1' },
  ),
  cast(
    'removes a final vote of a deleted person from a stopped poll',
    {
      seeds: [open, pollOf({ final: true }, { ...present, z: 1 }), voted],
      answer: ['ok', results(0, 1, 0, 0), 0],
      changes: [...inVote, `voted:${poll}:5`],
    },
    { options: '', act: 'erase', from: Buffer.alloc(0) },
  ),
  cast('refuses a vote in a stopped poll', { seeds: [open, pollOf({}, { z: 1 })], answer: ['poll_closed'] }),
  cast('refuses a vote after the end', {
    seeds: [open, pollOf({ close_date: seconds() - 1 })],
    answer: ['poll_closed'],
  }),
  cast('does nothing when a request is repeated after the end', {
    seeds: [open, pollOf({}, { z: 1 }), seeds.text(at.request, '1')],
    answer: ['ok', results(0, 1, 0, 0), 0],
  }),
  cast('leaves a ticket for a cold poll', {
    seeds: [open],
    answer: ['poll_missing', issued('T')],
    changes: [`poll:${poll}:ticket`],
  }),
  cast('refuses a deleted poll', { seeds: [open, deleted], answer: ['poll_gone'] }),
  cast('refuses while the journal is full', { seeds: [...full, pollOf()], answer: ['journal_full'] }),
  cast('refuses while the outbox is full', { seeds: [open, pollOf(), crowded], answer: ['outbox_full'] }),
  cast('refuses a different run id', { seeds: [open, pollOf()], ...stale }, other),
];

const telling: Case[] = [
  tell('sends the state of a changed poll', {
    seeds: [open, pollOf({}, present), dueAt(5)],
    answer: ['ok', 0, []],
    changes: ['meta', 'outbox', 'polls_due'],
    after: async (client) => {
      expect(await updates(client)).toEqual([
        [`${bot}`, 'poll', `${group.id}`, `${poll}`, [definition, [1, 0, 1, 0]]],
      ]);
      expect(await client.exists(at.due)).toBe(0);
    },
  }),
  tell('keeps the end of an open poll scheduled', {
    seeds: [open, pollOf({ close_date: seconds() + 600 }), dueAt(5)],
    answer: ['ok', 0, []],
    changes: ['meta', 'outbox', 'polls_due'],
    after: async (client) =>
      expect(Number(await client.zscore(at.due, `${poll}`))).toBeGreaterThan(Date.now()),
  }),
  tell('sends nothing before it is due', { seeds: [open, pollOf(), dueAt(soon)], answer: ['ok', 0, []] }),
  tell(
    'sends nothing for a deleted poll, and reports that more may be due',
    { seeds: [open, deleted, dueAt(5)], answer: ['ok', 1, []], changes: ['polls_due'] },
    { limit: '1' },
  ),
  tell('postpones a cold poll', {
    seeds: [open, dueAt(5)],
    answer: ['ok', 0, [Buffer.from(`${poll}`), Buffer.from(issued('T'))]],
    changes: [`poll:${poll}:ticket`, 'polls_due'],
  }),
  tell(
    'removes a poll that Postgres does not have',
    { seeds: [open, dueAt(5)], answer: ['ok', 0, []], changes: ['polls_due'] },
    { gone: [`${poll}`] },
  ),
  tell('refuses while the outbox is full', {
    seeds: [open, pollOf(), dueAt(5), crowded],
    answer: ['outbox_full'],
  }),
  tell('refuses a different run id', { seeds: [open], ...stale }, other),
];

const stopAt = { ...messageAt(group), ...at, due: at.due };
const memberBot = keys.member(group.id, bot);
const ofBot = { ...stopAt, member: memberBot, member_ticket: keys.ticket(memberBot) };
const stop = (
  what: string,
  more: More,
  { markup = Buffer.alloc(0), ...args }: Record<string, unknown> = {},
): Case => ({
  ...{ script: 'votes/stop', what, keys: ofBot },
  args: {
    ...{ stop: pack([chatText(group), '7', `${bot}`, `${poll}`, place]), direct: false, token: 'T' },
    ...{ markup, from: pack({ id: bot }), ...args },
  },
  ...more,
});
const admitted = seeds.member(bot, 'member');
const sent = seeds.message(group, 7, { kind: messageKinds.object, content: { object: definition } });
const ready = [open, seeds.chat(group), admitted, sent];
const stopped = [
  `changes:${group.id}`,
  `chat:${group.id}`,
  'journal',
  'meta',
  `msg:${group.id}:7`,
  'outbox',
  `poll:${poll}`,
  'req:r',
];

const stopping: Case[] = [
  stop(
    'closes a poll, replaces the keyboard and sends the results',
    {
      seeds: [...ready, pollOf({}, present), dueAt(soon)],
      answer: ['ok', results(1, 1, 1, 0), 1],
      changes: [...stopped, 'polls_due'].sort(),
      after: async (client) => {
        const message = unpackMessage((await client.getBuffer(keys.message(group, 7))) as Buffer);
        expect(message).toMatchObject({ markup: keyboard('k'), content: { object: definition } });
        expect(message.editedAt).toBeGreaterThan(0);
        expect(await updates(client)).toEqual([
          [`${bot}`, 'poll', `${group.id}`, `${poll}`, [definition, [1, 1, 1, 0]]],
        ]);
        const entries = await client.xrange(at.journal, '-', '+');
        expect(entries.map(([, fields]) => fields[1])).toEqual([`msg:${group.id}:7`, `results:${place}`]);
      },
    },
    { markup: pack(keyboard('k')) },
  ),
  stop('does not mark a message without a keyboard as edited', {
    seeds: [...ready, pollOf()],
    answer: ['ok', results(0, 1, 0, 0), 1],
    changes: stopped,
    after: async (client) =>
      expect(unpackMessage((await client.getBuffer(keys.message(group, 7))) as Buffer).editedAt).toBe(0),
  }),
  stop('does nothing in a second run', {
    seeds: [...ready, pollOf({}, { z: 1 }), seeds.text(at.request, '1')],
    answer: ['ok', results(0, 1, 0, 0), 0],
  }),
  stop('refuses a stopped poll', { seeds: [...ready, pollOf({}, { z: 1 })], answer: ['poll_closed'] }),
  stop('leaves a ticket for a cold poll', {
    seeds: ready,
    answer: ['poll_missing', issued('T')],
    changes: [`poll:${poll}:ticket`],
  }),
  stop('refuses a deleted poll', { seeds: [...ready, deleted], answer: ['poll_gone'] }),
  stop('leaves a ticket for a cold chat', {
    seeds: [open, pollOf()],
    answer: ['chat_missing', issued('T')],
    changes: [`chat:${group.id}:ticket`],
  }),
  stop('leaves a ticket for a cold member', {
    seeds: [open, seeds.chat(group), pollOf(), sent],
    answer: ['member_missing', issued('T')],
    changes: [`member:${group.id}:${bot}:ticket`],
  }),
  stop('refuses a bot that left the group', {
    seeds: [open, seeds.chat(group), seeds.member(bot, 'left'), pollOf(), sent],
    answer: ['not_member', 'group'],
  }),
  stop('leaves a ticket for a cold message', {
    seeds: [open, seeds.chat(group), admitted, pollOf()],
    answer: ['message_missing', issued('T')],
    changes: [`msg:${group.id}:7:ticket`],
  }),
  stop('refuses a deleted message', {
    seeds: [
      open,
      seeds.chat(group),
      admitted,
      pollOf(),
      seeds.message(group, 7, { kind: messageKinds.deleted }),
    ],
    answer: ['not_found'],
  }),
  stop('refuses while the journal is full', {
    seeds: [...full, seeds.chat(group), admitted, sent, pollOf()],
    answer: ['journal_full'],
  }),
  stop('refuses while the outbox is full', { seeds: [...ready, pollOf(), crowded], answer: ['outbox_full'] }),
  stop('refuses a different run id', { seeds: ready, ...stale }, other),
];

export const voteCases: readonly Case[] = [...creation, ...reading, ...casting, ...telling, ...stopping];

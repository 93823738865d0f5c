/** Test cases for webhook routes: installing them, and choosing the route of an update. */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { type Entity, messageKinds, packMessage } from '../../src/store/core/codec.js';
import { queueId } from '../../src/store/core/queue_ids.js';
import { packRoutes, type Route, type RouteRecord } from '../../src/store/core/route_record.js';
import type { Case } from './cases.js';
import { update } from './update_world.js';
import { at, chat, home, type More } from './webhook_world.js';
import { base, bot, incarnation, keys, run, type Seed, seeds } from './world.js';

const first = queueId(bot, 1);
const second = queueId(bot, 2);
const third = queueId(bot, 3);
const stateOf = (queue: number) => `queue_state:${queue}`;
const state = stateOf(bot);
const list = `routes:${bot}`;
const withRoutes = { ...at, routes: keys.routes(bot) };

const route = (slot: number, name: string, more: Partial<Route> = {}): Route => ({
  ...{ slot, name, url: '', secretToken: null, certificate: null, maxConnections: 40, address: null },
  ...{ retry: null, mask: 63, chats: null, percent: 100, made: 0, set: 8, dropped: 0, ...more },
});
const record = (...routes: Route[]): RouteRecord => ({ routes, removed: [] });
const packed = (version: number, active: boolean, ...routes: Route[]) =>
  packRoutes(record(...routes), version, active);

/** Installs routes with the script, as a front does. */
const installed =
  (...routes: Route[]): Seed =>
  async (client) => {
    const { callScript, scripts } = await import('./world.js');
    await callScript(client, scripts.get('webhooks/set_routes') as never, withRoutes, {
      ...{ bot: `${bot}`, routes: packed(9, true, ...routes), removed: [], run },
    });
  };
const entryIn =
  (queue: number, id: number, of = chat): Seed =>
  (client) =>
    client.xadd(
      keys.queue(queue),
      `${id}-0`,
      ...[
        'k',
        'message',
        't',
        `${Date.now()}`,
        'c',
        of,
        'm',
        '1',
        'r',
        'r',
        'f',
        'f',
        'p',
        '',
        'y',
        '',
        'x',
        '',
      ],
    );

const set = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/set_routes', what, keys: withRoutes },
  args: { bot: `${bot}`, routes: packed(9, true, route(1, 'a', { mask: 1 })), removed: [], ...args },
  ...more,
});
const opened = [seeds.open(home), seeds.queue()];

const installs: Case[] = [
  set('opens the queues of new routes with their webhooks, and keeps the mask of the bot', {
    seeds: opened,
    answer: ['ok', 1, 0, []],
    changes: [state, stateOf(first), list],
    async after(client) {
      expect(await client.hmget(keys.queueState(bot), 'mask', 'own', 'routes_version')).toEqual([
        '0',
        '63',
        '9',
      ]);
      const names = ['seq', 'bytes', 'mask', 'hook', 'hook_set', 'since', 'cur', 'dropped'];
      expect(await client.hmget(keys.queueState(first), ...names)).toEqual([
        '41',
        '0',
        '1',
        '9',
        '8',
        '9',
        '0',
        '9',
      ]);
    },
  }),
  set(
    'opens the queue of a paused route without a webhook',
    {
      seeds: opened,
      answer: ['ok', 1, 0, []],
      changes: [state, stateOf(first), list],
      after: async (client) => expect(await client.hexists(keys.queueState(first), 'hook')).toBe(0),
    },
    { routes: packed(9, false, route(1, 'a')) },
  ),
  set(
    'ignores an outdated version',
    { seeds: [...opened, installed(route(1, 'a'))], answer: ['ok', 1, 0, []], changes: [] },
    { routes: packed(9, true), removed: ['1'] },
  ),
  set(
    'moves the updates of a removed route to the bot’s own queue, restores the mask, and wakes its worker',
    {
      seeds: [
        ...[seeds.open(home), seeds.queue({ hook: 7 }), installed(route(1, 'a'))],
        ...[entryIn(first, 39), entryIn(first, 40), seeds.hash(keys.queueState(first), { dead: 3 })],
      ],
      answer: ['ok', 1, 1, []],
      changes: [state, stateOf(first), `queue:${bot}`, `queue:${first}`, list, 'webhooks_due'],
      async after(client) {
        expect(await client.xlen(keys.queue(first))).toBe(0);
        const rows = await client.xrange(keys.queue(bot), '-', '+');
        expect(rows.map(([id, fields]) => [id, ...fields.slice(-2)])).toEqual([
          ['42-0', 'u', '39'],
          ['43-0', 'u', '40'],
        ]);
        expect(await client.hmget(keys.queueState(bot), 'mask', 'own')).toEqual(['63', null]);
        expect(await client.hexists(keys.queueState(first), 'dead')).toBe(0);
      },
    },
    { routes: packed(10, true), removed: ['1'] },
  ),
  set(
    'moves at most 100 updates in a call, and installs nothing before the last',
    {
      seeds: [
        ...[...opened, installed(route(1, 'a'))],
        async (client) => {
          for (let id = 1; id <= 101; id++) await entryIn(first, id)(client);
        },
      ],
      answer: ['ok', 0, 0, []],
      changes: [state, stateOf(first), `queue:${bot}`, `queue:${first}`],
      async after(client) {
        expect(await client.xlen(keys.queue(first))).toBe(1);
        expect(await client.hget(keys.queueState(bot), 'mask')).toBe('0');
      },
    },
    { routes: packed(10, true), removed: ['1'] },
  ),
  set(
    'names the installed routes that the new list does not mention, and changes nothing',
    {
      seeds: [...opened, installed(route(1, 'a'), route(2, 'b'))],
      answer: ['ok', 0, 0, [Buffer.from('2')]],
      changes: [],
    },
    { routes: packed(10, true, route(1, 'a')) },
  ),
  set(
    'changes nothing for a bot that never had routes, even while the journal is full',
    {
      seeds: [seeds.open(home, { hw: 1 }), seeds.stream(keys.journal(home), 1), seeds.queue()],
      answer: ['ok', 1, 0, []],
      changes: [],
    },
    { routes: packed(10, true) },
  ),
  set('reports a missing queue', { seeds: [seeds.open(home)], answer: ['queue_missing'] }),
  set('refuses a different run id', { seeds: opened, answer: ['stale_run'] }, { run: 'other' }),
  set('refuses while the journal is full', {
    seeds: [seeds.open(home, { hw: 1 }), seeds.stream(keys.journal(home), 1), seeds.queue()],
    answer: ['journal_full'],
  }),
];

const marks = `queue_marks:${bot}`;
const group = '-100777';
const accept = (
  what: string,
  routes: readonly Route[],
  more: More,
  updates: readonly unknown[] = update(base + 1),
): Case => ({
  ...{ script: 'updates/accept_forwarded', what },
  keys: { ...at, marks: keys.queueMarks(bot) },
  args: { bot: `${bot}`, source: '5', expected: run, updates },
  ...more,
  seeds: [seeds.open(home), seeds.queue({ hook: 7 }), installed(...routes), ...(more.seeds ?? [])],
});
const into = (queue: number, wake: number): Pick<Case, 'answer' | 'changes'> => ({
  answer: ['ok', 1, wake],
  changes: [...new Set([state, stateOf(queue), `queue:${queue}`, marks, 'webhooks_due'])],
});
const share = (name: string) =>
  Number.parseInt(createHash('sha1').update(`${name}:${group}`).digest('hex').slice(0, 8), 16) % 100;

/** Builds an update about a message. Without entities, the whole text is a command. */
const said = (text: string, kind = ['1', 'message'], entities?: readonly Entity[], caption = false) => {
  const command = { type: 'bot_command', offset: 0, length: text.length };
  const media = { type: 'photo', id: 'p', unique: 'p' } as const;
  const record = packMessage({
    ...{ version: base, date: 1_800_000_000, editedAt: 0, sender: 1, flags: 0, post: 0 },
    kind: caption ? messageKinds.media : messageKinds.text,
    content: { text, entities: entities ?? [command], ...(caption ? { media } : {}) },
    ...{ markup: null, origin: {} },
  });
  return update(base + 1, 'x', kind).map((each) => (each === 'r' ? record : each));
};
const orders = [
  route(1, 'a', { commands: { names: ['pay', 'order_2'], username: 'shop_bot' } }),
  route(2, 'b', { commands: { names: ['help', 'pay'], username: 'shop_bot' } }),
  route(3, 'c'),
];
const press = ['16', 'callback_query'];
const commands: Case[] = (
  [
    ['takes a command', '/pay', first],
    ['takes a command of another route', '/help', second],
    ['takes a command in upper case', '/PAY', first],
    ['takes a command that names the bot, in any case', '/order_2@Shop_Bot', first],
    ['takes a command in a post', '/pay', first, ['4', 'channel_post']],
    ['takes an edited command', '/pay', first, ['2', 'edited_message']],
    ['leaves a command that names another bot', '/pay@other_bot', third],
    ['leaves a command of no route', '/order', third],
    ['leaves a longer command', '/payment', third],
    ['leaves a text without a command', 'pay', third, undefined, []],
    ['leaves a press of a button below a command', '/pay', third, press],
    ['leaves a command in a caption', '/pay', third, undefined, undefined, true],
    [
      'leaves a command after other words',
      'now /pay',
      third,
      undefined,
      [{ type: 'bot_command', offset: 4, length: 4 }],
    ],
    [
      'takes a bold command with further words',
      '/pay now',
      first,
      undefined,
      [
        { type: 'bold', offset: 0, length: 8 },
        { type: 'bot_command', offset: 0, length: 4 },
      ],
    ],
  ] as ReadonlyArray<[string, string, number, string[]?, Entity[]?, boolean?]>
).map(([what, text, queue, kind, entities, caption]) =>
  accept(
    `${what}, for a route with commands`,
    orders,
    into(queue, 2 ** [bot, first, second, third].indexOf(queue)),
    said(text, kind, entities, caption),
  ),
);

const choices: Case[] = [
  accept(
    'adds an update to the first route that takes it, under the next id of the bot',
    [...[route(1, 'a', { mask: 2 }), route(2, 'b'), route(3, 'c')]],
    {
      ...into(second, 4),
      async after(client) {
        expect((await client.xrange(keys.queue(second), '-', '+')).map(([id]) => id)).toEqual(['42-0']);
        expect(await client.hget(keys.queueState(bot), 'seq')).toBe('42');
        expect(await client.zrange(keys.webhooksDue(home), '0', '-1')).toEqual([`${second}`]);
      },
    },
  ),
  accept('adds an update that no route takes to the bot’s own queue', [route(1, 'a', { mask: 2 })], {
    ...into(bot, 1),
  }),
  accept('drops an update that neither a route nor the bot takes', [route(1, 'a', { mask: 2 })], {
    seeds: [seeds.hash(keys.queueState(bot), { own: 2 })],
    answer: ['ok', 1, 0],
    changes: [marks],
  }),
  accept(
    'adds an update to the route that lists its chat',
    [...[route(1, 'a', { chats: ['-1'] }), route(2, 'b', { chats: ['-1', group] }), route(3, 'c')]],
    { ...into(second, 4) },
  ),
  accept(
    'takes a chat whose hash is below the percentage',
    [...[route(1, 'a', { percent: share('a') + 1 }), route(2, 'b')]],
    { ...into(first, 2) },
  ),
  accept(
    'leaves a chat whose hash is not below the percentage',
    [...[route(1, 'a', { percent: Math.max(1, share('a')) }), route(2, 'b')]],
    { ...into(second, 4) },
  ),
  accept('continues above the last id in the queue of the route', [route(3, 'c')], {
    seeds: [seeds.hash(keys.queueState(third), { seq: 60 })],
    ...into(third, 8),
    async after(client) {
      expect((await client.xrange(keys.queue(third), '-', '+')).map(([id]) => id)).toEqual(['61-0']);
      expect(await client.hget(keys.queueState(bot), 'seq')).toBe('61');
    },
  }),
  accept('skips a route whose queue is not open', [route(1, 'a'), route(2, 'b')], {
    seeds: [(client) => client.del(keys.queueState(first))],
    ...into(second, 4),
  }),
  accept(
    'reports every queue to wake',
    [route(1, 'a', { mask: 2 })],
    {
      answer: ['ok', 2, 3],
      changes: [state, stateOf(first), `queue:${bot}`, `queue:${first}`, marks, 'webhooks_due'],
    },
    [...update(base + 1, 'x', ['2', 'edited_message']), ...update(base + 2)],
  ),
];

const others: Case[] = [
  {
    ...{ script: 'webhooks/bury', what: 'journals a dead letter of a route under the bot, with the slot' },
    keys: {
      ...{ meta: keys.meta(home), journal: keys.journal(home), state: keys.queueState(first) },
      ...{ queue: keys.queue(first), parked: keys.parked(first), retries: keys.retries(first) },
      ...{ attempts: keys.attempts(first), due: keys.webhooksDue(home) },
    },
    args: { bot: `${first}`, fence: `${base}`, reason: 'expired', ids: ['39'] },
    seeds: [
      ...[...opened, installed(route(1, 'a')), entryIn(first, 39)],
      seeds.hash(keys.queueState(first), { fence: base, bytes: 100 }),
    ],
    answer: ['ok', 1],
    changes: ['meta', 'journal', stateOf(first), `queue:${first}`],
    async after(client) {
      const [[, fields] = ['', []]] = await client.xrange(keys.journal(home), '-', '+');
      expect(fields[1]).toBe(`dead:${bot}:39`);
      expect(fields[3]).toMatch(/l\W*1$/);
    },
  },
  {
    ...{ script: 'webhooks/replay', what: 'adds an update of a route to its queue again' },
    keys: { ...at, request: keys.request(home, 'once.replay.1.1') },
    args: {
      bot: `${bot}`,
      updates: ['17', 'message', chat, '1', 'r', 'f', 'p', 'y', 'x', '1'],
    },
    seeds: [...opened, installed(route(1, 'a'))],
    answer: ['ok', 1, 2],
    changes: [stateOf(first), `queue:${first}`, 'webhooks_due', 'req:once.replay.1.1'],
  },
  {
    ...{ script: 'webhooks/replay', what: 'adds an update of a deleted route to the bot’s own queue' },
    keys: { ...at, request: keys.request(home, 'once.replay.1.1') },
    args: {
      bot: `${bot}`,
      updates: ['17', 'message', chat, '1', 'r', 'f', 'p', 'y', 'x', '1'],
    },
    seeds: opened,
    answer: ['ok', 1, 0],
    changes: [state, `queue:${bot}`, 'req:once.replay.1.1'],
  },
  {
    ...{ script: 'updates/open_queue', what: 'opens the queues of the routes too' },
    keys: withRoutes,
    args: {
      ...{ known: `${incarnation}`, start: '9', mask: '63', hook: '', set: '0' },
      routes: packed(9, true, route(1, 'a')),
    },
    seeds: [seeds.open(home)],
    answer: ['ok', 1],
    changes: [state, stateOf(first), list],
    after: async (client) =>
      expect([
        await client.hmget(keys.queueState(bot), 'mask', 'own'),
        await client.hget(keys.queueState(first), 'hook'),
      ]).toEqual([['0', '63'], '9']),
  },
  {
    ...{ script: 'updates/close_queue', what: 'closes the queues of the routes too' },
    keys: { ...withRoutes, marks: keys.queueMarks(bot) },
    args: { version: '9' },
    seeds: [...opened, installed(route(1, 'a')), entryIn(first, 39)],
    answer: ['ok'],
    changes: [state, stateOf(first), `queue:${first}`, list],
    after: async (client) => {
      expect(await client.hexists(keys.queueState(first), 'hook')).toBe(0);
      expect(await client.pttl(keys.queueState(first))).toBeGreaterThan(0);
    },
  },
  {
    ...{ script: 'updates/close_queue', what: 'closes the queue of a route that is being deleted' },
    keys: { ...withRoutes, marks: keys.queueMarks(bot) },
    args: { version: '9' },
    seeds: [
      ...[...opened, installed(route(2, 'b')), entryIn(second, 39)],
      ...[seeds.hash(keys.queueState(second), { hook: 7 }), seeds.hash(keys.retries(second), { a: 1 })],
      (client) => client.del(keys.routes(bot)),
    ],
    answer: ['ok'],
    changes: [state, stateOf(second), `queue:${second}`, `retries:${second}`],
  },
  {
    ...{ script: 'updates/info', what: 'reports the bot’s own mask while it has routes' },
    keys: withRoutes,
    args: {},
    seeds: [...opened, installed(route(1, 'a'))],
    answer: ['ok', 0, '63', null, null, null, expect.any(Number), 0],
    changes: [],
  },
  {
    ...{ script: 'webhooks/switch', what: 'changes the bot’s own mask while it has routes' },
    keys: at,
    args: { bot: `${bot}`, version: '9', set: '9', active: true, drop: '', mask: '7' },
    seeds: [...opened, installed(route(1, 'a'))],
    answer: ['ok', 0, 0],
    changes: ['meta', 'journal', state],
    after: async (client) =>
      expect(await client.hmget(keys.queueState(bot), 'mask', 'own')).toEqual(['0', '7']),
  },
];

export const webhookRouteCases: readonly Case[] = [...installs, ...choices, ...commands, ...others];

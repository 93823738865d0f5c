/** Calls of the scripts below webhooks/ and every status they can end in. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack } from '../../src/store/codec.js';
import { chatText } from '../../src/store/keys.js';
import type { Case } from './cases.js';
import { base, bot, direct, keys, partitionOf, type Seed, seeds } from './world.js';

const home = partitionOf(direct);
const chat = chatText(direct);
const other = `${bot}.9`;
const fence = `${base}`;
const at = {
  ...{ meta: keys.meta(home), journal: keys.journal(home), state: keys.queueState(bot) },
  ...{ queue: keys.queue(bot), parked: keys.parked(bot), retries: keys.retries(bot) },
  ...{ attempts: keys.attempts(bot), due: keys.webhooksDue(home), channel: keys.botChannel(bot) },
};
const state = `queue_state:${bot}`;
const stream = `queue:${bot}`;
const parked = `parked:${bot}`;
const retries = `retries:${bot}`;
const attempts = `attempts:${bot}`;
const due = 'webhooks_due';

type More = Partial<Case> & Pick<Case, 'answer'>;
const hooked = (fields: Record<string, string | number> = {}): Seed =>
  seeds.queue({ hook: 7, since: 7, hook_version: 7, cur: 0, bytes: 300, ...fields });
const member = (id: number, of = chat) => `${of}:${`${id}`.padStart(16, '0')}`;
const zset =
  (key: string, ...members: Array<string | number>): Seed =>
  (client) =>
    client.zadd(key, ...members);
/** Three updates, the first two of one chat. */
const three = [seeds.open(home), seeds.entry(39), seeds.entry(40), seeds.entry(41, { c: other })];
const ids = (rows: unknown) => (rows as [Buffer][]).map(([id]) => String(id)).join();
const rowsOf = (wanted: string) => expect.toSatisfy((rows) => ids(rows) === wanted);
/** Chats with their tries and the ids of their updates. */
const again = (...wanted: Array<[chat: string, tries: string, ids: string]>) =>
  expect.toSatisfy(
    (chats) =>
      JSON.stringify(
        (chats as [Buffer, Buffer, unknown][]).map(([name, tries, rows]) => [
          `${name}`,
          `${tries}`,
          ids(rows),
        ]),
      ) === JSON.stringify(wanted),
  );
const any = expect.anything();
const later = Date.now() + 600_000;

const lease = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/lease', what, keys: at, args: { bot: `${bot}`, limit: 10, ...args } },
  ...more,
});
const leased = [state, 'meta', due];
const leases: Case[] = [
  lease('takes what waits', {
    seeds: [...three, hooked()],
    answer: ['ok', `${base + 1}`, '7', '7', any, [], rowsOf('39-0,40-0,41-0'), '41', '0', 0, -1, 0],
    changes: leased,
    async after(client) {
      const [now] = await client.time();
      const until = Number(await client.hget(keys.queueState(bot), 'leased'));
      expect(Math.abs(until - Number(now) * 1_000 - limits.webhook_lease_ms)).toBeLessThan(2_000);
      expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBe(`${until}`);
    },
  }),
  lease('takes a chat that is due, and parks what stands behind it', {
    seeds: [
      ...three,
      hooked({ cur: 39 }),
      zset(keys.parked(bot), 0, member(39)),
      zset(keys.retries(bot), 1, chat),
      seeds.hash(keys.attempts(bot), { [chat]: '39 4' }),
    ],
    answer: ['ok', any, '7', '7', any, again([chat, '4', '39-0']), rowsOf('41-0'), '41', '39', 0, any, 0],
    changes: [...leased, parked, retries],
    async after(client) {
      expect(await client.zrange(keys.parked(bot), '0', '-1')).toEqual([member(39), member(40)]);
      expect(Number(await client.zscore(keys.retries(bot), chat))).toBeGreaterThan(Date.now());
    },
  }),
  lease('a chat whose updates are gone is parked no more', {
    seeds: [...three, hooked(), zset(keys.parked(bot), 0, member(12)), zset(keys.retries(bot), 1, chat)],
    answer: ['ok', any, '7', '7', any, [], rowsOf('39-0,40-0,41-0')],
    changes: [...leased, parked, retries],
  }),
  lease('a receiver that was down is shown one update', {
    seeds: [...three, hooked({ probes: 2 })],
    answer: ['ok', any, '7', '7', any, [], rowsOf('39-0'), '39', '0', 1, -1, 2],
    changes: leased,
  }),
  lease('after a worker that died', {
    seeds: [...three, hooked({ leased: 5 })],
    answer: ['ok', any],
    changes: leased,
    after: async (client) => expect(await client.hget(keys.queueState(bot), 'strayed')).not.toBeNull(),
  }),
  lease('another run', { seeds: [...three, hooked()], answer: ['stale_run'] }, { run: 'other' }),
  lease('a bot that polls', { seeds: [...three, seeds.queue()], answer: ['no_webhook'] }),
  lease('another has it', { seeds: [...three, hooked({ leased: later })], answer: ['leased'] }),
  lease('its receiver is down', { seeds: [...three, hooked({ hold: later })], answer: ['held'] }),
];

const report = (more = {}) =>
  pack({
    ...{ acked: [], failed: [], chats: 10, updates: 10, error: '', gone: '', hold: 0, probes: 0, hook: 7 },
    ...more,
  });
const advance = (what: string, more: More, told = {}, args = {}): Case => ({
  ...{ script: 'webhooks/advance', what, keys: at },
  args: {
    ...{ bot: `${bot}`, fence, since: '7', after: '41', safe: '41', leave: 'stay' },
    ...{ report: report(told), ...args },
  },
  ...more,
});
const mine = (fields = {}) => hooked({ fence, leased: later, ...fields });
const field = (client: Redis, name: string) => client.hget(keys.queueState(bot), name);
const failedChat = [chat, 60_000, '3', '39', '40'];
const steps: Case[] = [
  advance(
    'acknowledges and renews',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 0, 0],
      changes: [stream, state, due],
      async after(client) {
        expect((await client.xrange(keys.queue(bot), '-', '+')).map(([id]) => id)).toEqual(['41-0']);
        expect([await field(client, 'bytes'), await field(client, 'cur')]).toEqual(['80', '41']);
      },
    },
    { acked: ['39', 100, '', '40', 120, ''] },
  ),
  advance(
    'what was acknowledged before counts once',
    { seeds: [...three, mine()], answer: ['ok', '7'], changes: [state, due] },
    { acked: ['12', 100, ''] },
  ),
  advance(
    'parks a chat that failed, with the error',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, 60_000],
      changes: [state, due, parked, retries, attempts],
      async after(client) {
        expect(await client.zrange(keys.parked(bot), '0', '-1')).toEqual([member(39), member(40)]);
        expect(await client.hgetall(keys.attempts(bot))).toEqual({ [chat]: '39 3' });
        expect(await field(client, 'err')).toBe('why');
      },
    },
    { failed: [failedChat], error: 'why' },
  ),
  advance(
    'parks nothing that was dropped',
    { seeds: [seeds.open(home), mine()], answer: ['ok', '7'], changes: [state, due] },
    { failed: [failedChat] },
  ),
  advance(
    'the next of a parked chat is due once the first is acknowledged',
    {
      seeds: [
        ...three,
        mine(),
        zset(keys.parked(bot), 0, member(39), 0, member(40)),
        zset(keys.retries(bot), later, chat),
        seeds.hash(keys.attempts(bot), { [chat]: '39 3' }),
      ],
      answer: ['ok', '7', any, again([chat, '0', '40-0']), []],
      changes: [stream, state, due, parked, retries, attempts],
    },
    { acked: ['39', 100, chat] },
  ),
  advance(
    'begins a run of 410',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, -1, expect.stringMatching(/^\d{13}$/)],
      changes: [state, due],
    },
    { gone: 'set' },
  ),
  advance(
    'goes on with a run of 410',
    {
      seeds: [...three, mine({ gone: 5 })],
      answer: ['ok', '7', any, [], [], '41', 0, -1, '5'],
      changes: [state, due],
    },
    { gone: 'set' },
  ),
  advance(
    'ends a run of 410',
    {
      seeds: [...three, mine({ gone: 5 })],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null],
      changes: [state, due],
    },
    { gone: 'clear' },
  ),
  advance(
    'leaves when nothing is left',
    {
      seeds: [...three, mine(), zset(keys.webhooksDue(home), later, bot)],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 1, 0],
      changes: [state, due],
      async after(client) {
        expect(await field(client, 'leased')).toBeNull();
        expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBeNull();
      },
    },
    {},
    { leave: 'idle' },
  ),
  advance(
    'leaves without having read what came: somebody is to look at once',
    {
      seeds: [...three, mine({ dropped: 6 })],
      answer: ['ok', '7', any, [], [], '40', 0, -1, null, 1, 1, '6'],
      changes: [state, due],
      after: async (client) => expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).not.toBeNull(),
    },
    { updates: 0, chats: 1 },
    { leave: 'idle', after: '40', safe: '40' },
  ),
  advance(
    'what a former receiver did is not held against the present one',
    {
      seeds: [...three, mine({ hook_set: 9, hook: 9 })],
      answer: ['ok', '9', any, [], [], '41', 0, -1, null, 1, 1, '0'],
      changes: [state, due],
      async after(client) {
        const names = ['hold', 'probes', 'err', 'gone'] as const;
        expect(await Promise.all(names.map((name) => field(client, name)))).toEqual([null, null, null, null]);
      },
    },
    { hold: 30_000, probes: 4, error: 'why', gone: 'set', hook: 8 },
    { leave: 'now', safe: '39' },
  ),
  advance(
    'leaves until the next retry',
    {
      seeds: [...three, mine(), zset(keys.parked(bot), 0, member(39)), zset(keys.retries(bot), later, chat)],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 1, 0],
      changes: [state, due],
      after: async (client) => expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBe(`${later}`),
    },
    {},
    { leave: 'idle' },
  ),
  advance(
    'stays when something came',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], rowsOf('41-0'), '41', 0, -1, null, 0, 0],
      changes: [state, due],
      after: async (client) => expect(await field(client, 'cur')).toBe('40'),
    },
    {},
    { leave: 'idle', after: '40', safe: '40' },
  ),
  advance(
    'leaves with work undone: somebody is to look at once',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 1, 1],
      changes: [state, due],
    },
    {},
    { leave: 'now', safe: '39' },
  ),
  advance(
    'leaves a receiver that is down alone for a while',
    {
      seeds: [...three, mine()],
      answer: ['ok', '7', any, [], [], '41', 0, -1, null, 1, 0],
      changes: [state, due],
      async after(client) {
        expect(Number(await field(client, 'hold'))).toBeGreaterThan(Date.now() + 20_000);
        expect(await field(client, 'probes')).toBe('4');
      },
    },
    { hold: 30_000, probes: 4 },
    { leave: 'now', safe: '39' },
  ),
  advance(
    'after the webhook was deleted: acknowledges and nothing else',
    {
      seeds: [...three, seeds.queue({ fence, leased: later, bytes: 300 })],
      answer: ['ok', 0, any, [], [], '41', 0, any, null, 0, 0],
      changes: [stream, state],
    },
    { acked: ['39', 100, ''], failed: [[chat, 0, '1', '40']] },
  ),
  advance(
    'after the webhook was deleted: gives the lease back',
    {
      seeds: [...three, seeds.queue({ fence, leased: later })],
      answer: ['ok', 0, any, [], [], '41', 0, any, null, 1, 0],
      changes: [state],
    },
    {},
    { leave: 'now' },
  ),
  advance(
    'after another webhook was set: hands over',
    {
      seeds: [...three, mine({ hook: 9, since: 9 })],
      answer: ['ok', 0, any, [], [], '41', 0, any, null, 1, 1],
      changes: [state, due],
    },
    {},
    { leave: 'now' },
  ),
  advance(
    'another has the lease',
    { seeds: [...three, hooked({ fence: base + 5 })], answer: ['fenced'] },
    { acked: ['39', 100, ''] },
  ),
];

const bury = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/bury', what, keys: at },
  args: { bot: `${bot}`, fence, reason: 'too_large', ids: ['39', '12'], ...args },
  ...more,
});
const burials: Case[] = [
  bury('hands it to Postgres with the reason', {
    seeds: [...three, mine(), zset(keys.parked(bot), 0, member(39)), zset(keys.retries(bot), 1, chat)],
    answer: ['ok', 1],
    changes: [stream, state, 'journal', 'meta', parked, retries],
    async after(client) {
      const [entry] = await client.xrange(keys.journal(home), '-', '+');
      expect(entry?.[1][1]).toBe(`dead:${bot}:39`);
      expect(entry?.[1][3]).toContain('too_large');
    },
  }),
  bury('again', { seeds: [...three, mine()], answer: ['ok', 0], changes: [] }, { ids: ['12'] }),
  bury('another run', { seeds: [...three, mine()], answer: ['stale_run'] }, { run: 'other' }),
  bury('a full journal', {
    seeds: [...three, seeds.open(home, { hw: 1 }), seeds.stream(keys.journal(home), 1), mine()],
    answer: ['journal_full'],
  }),
  bury('another has the lease', { seeds: [...three, hooked({ fence: 5 })], answer: ['fenced'] }),
];

const sweep = (what: string, more: More): Case => ({
  script: 'webhooks/sweep',
  what,
  keys: { due: keys.webhooksDue(home), state: keys.queueStateRoot(home) },
  args: { limit: 10 },
  ...more,
});
const waits = zset(keys.webhooksDue(home), 1, bot);
const sweeps: Case[] = [
  sweep('rings for what is due', {
    seeds: [hooked(), waits],
    answer: ['ok', [Buffer.from(`${bot}`)], [], 0],
    changes: [state, due],
  }),
  sweep('what was rung for lately waits', {
    seeds: [hooked({ rung: later }), waits],
    answer: ['ok', [], [], 0],
    changes: [due],
  }),
  sweep('tells of what was rung for in vain', {
    seeds: [hooked({ rung: 1 }), waits],
    answer: ['ok', [], [Buffer.from(`${bot}`)], 0],
    changes: [state, due],
  }),
  sweep('what a worker has waits for the end of the lease', {
    seeds: [hooked({ leased: later }), waits],
    answer: ['ok', [], [], 0],
    changes: [due],
    after: async (client) => expect(await client.zscore(keys.webhooksDue(home), `${bot}`)).toBe(`${later}`),
  }),
  sweep('what polls is struck off', {
    seeds: [seeds.queue(), waits],
    answer: ['ok', [], [], 0],
    changes: [due],
  }),
  sweep('what is not due is left alone', {
    seeds: [hooked(), zset(keys.webhooksDue(home), later, bot)],
    answer: ['ok', [], [], 0],
    changes: [],
  }),
];

const change = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'webhooks/switch', what, keys: at },
  args: { bot: `${bot}`, version: '9', set: '9', active: true, drop: '', mask: '', ...args },
  ...more,
});
const off = { active: false };
const index = [zset(keys.parked(bot), 0, member(39)), zset(keys.retries(bot), later, chat)];
const switches: Case[] = [
  change('from polling, with updates that wait', {
    seeds: [...three, seeds.queue()],
    answer: ['ok', 1],
    changes: [state, due],
    async after(client) {
      const names = ['hook', 'since', 'hook_version', 'hook_set'];
      expect(await client.hmget(keys.queueState(bot), ...names)).toEqual(['9', '9', '9', '9']);
    },
  }),
  change('from polling, with none', { seeds: [seeds.queue()], answer: ['ok', 0], changes: [state] }),
  change('another webhook: its receiver is given at once what failed', {
    seeds: [...three, ...index, mine({ err: 'why', err_at: 5, hold: 5 })],
    answer: ['ok', 0],
    changes: [state, due, retries],
    async after(client) {
      expect([await field(client, 'err'), await field(client, 'since')]).toEqual([null, '7']);
      expect(Number(await client.zscore(keys.retries(bot), chat))).toBeLessThan(later);
    },
  }),
  change(
    'to polling: the lease of its worker is cut short, and nothing is lost',
    {
      seeds: [...three, ...index, mine(), waits],
      answer: ['ok', 0],
      changes: [state, due, parked, retries],
      async after(client) {
        expect(Number(await field(client, 'leased'))).toBeLessThan(Date.now() + 2 * limits.webhook_grace_ms);
        expect(await field(client, 'hook')).toBeNull();
        expect(await client.xlen(keys.queue(bot))).toBe(3);
      },
    },
    off,
  ),
  change(
    'drops what waits, and takes a mask',
    {
      seeds: [...three, ...index, mine(), waits],
      answer: ['ok', 0],
      changes: [state, due, parked, retries, stream],
      async after(client) {
        expect([await field(client, 'bytes'), await field(client, 'mask')]).toEqual(['0', '5']);
      },
    },
    { ...off, drop: '9', mask: '5' },
  ),
  change(
    'again: drops nothing',
    { seeds: [...three, mine({ hook_version: 9, dropped: 9 })], answer: ['ok', 0], changes: [] },
    { drop: '9' },
  ),
  change(
    'a version that came late changes nothing',
    { seeds: [...three, mine({ hook_version: 11 })], answer: ['ok', 0], changes: [] },
    off,
  ),
  change(
    'another signing secret: what failed stays as it is, and the worker hears of it',
    {
      seeds: [...three, ...index, mine({ hook_set: 7, err: 'why', err_at: 5, gone: 5, hold: 5, probes: 2 })],
      answer: ['ok', 0],
      changes: [state],
      async after(client) {
        const names = [
          'hook',
          'hook_version',
          'hook_set',
          'since',
          'err',
          'err_at',
          'gone',
          'hold',
          'probes',
        ];
        const kept = ['9', '9', '7', '7', 'why', '5', '5', '5', '2'];
        expect(await client.hmget(keys.queueState(bot), ...names)).toEqual(kept);
        expect(await client.zscore(keys.retries(bot), chat)).toBe(`${later}`);
      },
    },
    { set: '7' },
  ),
  change(
    'another signing secret of a queue that was switched before versions were two',
    {
      seeds: [...three, mine({ err: 'why' })],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'err')).toBe('why'),
    },
    { set: '7' },
  ),
  change(
    'deliveries end, though the webhook stays set',
    {
      seeds: [...three, mine({ hook_set: 7 })],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'hook')).toBeNull(),
    },
    { ...off, set: '7' },
  ),
  change(
    'deliveries go on of a webhook that stayed set',
    {
      seeds: [...three, seeds.queue({ hook_version: 8, hook_set: 7 })],
      answer: ['ok', 1],
      changes: [state, due],
      after: async (client) => expect(await field(client, 'hook')).toBe('9'),
    },
    { set: '7' },
  ),
  change(
    'the signing secret of a bot that polls',
    {
      seeds: [...three, seeds.queue()],
      answer: ['ok', 0],
      changes: [state],
      after: async (client) => expect(await field(client, 'hook')).toBeNull(),
    },
    { ...off, set: '0' },
  ),
  change(
    'drops what waits of a bot that polls',
    {
      seeds: [...three, seeds.queue()],
      answer: ['ok', 0],
      changes: [state, stream],
      after: async (client) => expect(await field(client, 'bytes')).toBe('0'),
    },
    { ...off, set: '0', drop: '9' },
  ),
  change('no queue', { seeds: [seeds.open(home)], answer: ['queue_missing'] }),
];

export const webhookCases: readonly Case[] = [...leases, ...steps, ...burials, ...sweeps, ...switches];

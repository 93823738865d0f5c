/**
 * Test cases with long or large data. Each call does a limited part of the work, and reports whether more work is left.
 */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { chatText, directChat } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { queue } from './update_world.js';
import { at, due, home, hooked, later, retries, state, stream } from './webhook_world.js';
import { base, bot, incarnation, keys, type Seed, seeds } from './world.js';

const { script_entries_max: entriesMax, script_read_bytes_max: bytesMax } = limits;

const filled =
  (key: string, count: number, bytes: number): Seed =>
  (client) =>
    client.eval(
      `local r = string.rep('r', ARGV[2])
       for i = 1, ARGV[1] do
         redis.call('XADD', KEYS[1], i .. '-0', 'k', 'message', 't', ARGV[3], 'c', '100001.' .. i, 'm', '1', 'r', r,
           'f', 'f', 'p', '', 'y', '', 'x', '')
       end`,
      1,
      key,
      count,
      bytes,
      Date.now(),
    );

/** Creates chats with eight parked updates each, all due at the same time. */
const parked =
  (chats: number, dueAt: number): Seed =>
  (client) =>
    client.eval(
      `for chat = 1, ARGV[1] do
         local name = '100001.' .. chat
         redis.call('ZADD', KEYS[2], ARGV[2], name)
         for i = 1, 8 do redis.call('ZADD', KEYS[1], 0, name .. ':' .. ('%016.0f'):format(chat * 8 + i)) end
       end`,
      2,
      at.parked,
      at.retries,
      chats,
      dueAt,
    );

const poll = (args: object): Partial<Case> => ({
  args: { bot: `${bot}`, poll: 'mine', first: true, offset: '', limit: '100', mask: '', ...args },
});
const left = (count: number) => async (client: Redis) => expect(await client.xlen(at.queue)).toBe(count);
const hastened = (count: number) => async (client: Redis) =>
  expect(await client.zcount(at.retries, '-inf', Date.now() + 1_000)).toBe(count);
const small = (rows: unknown) => {
  const bytes = JSON.stringify(rows).match(/"type":"Buffer"/g)?.length ?? 0;
  return bytes > 0 && (rows as unknown[]).length < 20;
};
const longQueue = [seeds.open(home), seeds.queue({ seq: 1_300, bytes: 26_000 }), filled(at.queue, 1_300, 3)];
const largeQueue = [seeds.open(home), seeds.queue({ seq: 50, bytes: 5e6 }), filled(at.queue, 50, 100_000)];
const manyChats = Array.from({ length: 300 }, (_, i) => chatText(directChat(bot, i + 1)));

const switched = {
  ...{ script: 'webhooks/switch' as const, keys: at },
  args: { bot: `${bot}`, version: '9', set: '9', active: true, drop: '', mask: '' },
} as const;

export const boundCases: readonly Case[] = [
  {
    ...{
      script: 'updates/poll',
      what: 'removes a bounded number of updates when it keeps only the last of many',
      keys: queue,
    },
    ...{ args: {}, ...poll({ offset: '-1' }), seeds: longQueue },
    ...{ answer: ['ok', [], 1], changes: [state, stream], after: left(1_300 - entriesMax) },
  },
  {
    ...{
      script: 'updates/poll',
      what: 'removes a bounded number of updates when it confirms many',
      keys: queue,
    },
    ...{ args: {}, ...poll({ offset: '1301' }), seeds: longQueue },
    ...{ answer: ['ok', [], 1], changes: [state, stream], after: left(1_300 - entriesMax) },
  },
  {
    ...{ script: 'updates/poll', what: 'confirms large updates up to the limit in bytes', keys: queue },
    ...{ args: {}, ...poll({ offset: '51' }), seeds: largeQueue },
    ...{ answer: ['ok', [], 1], changes: [state, stream] },
    async after(client) {
      const rest = await client.xlen(at.queue);
      expect(rest).toBeGreaterThan(50 - 20);
      expect(rest).toBeLessThan(50);
      // The test data count each update as 100 kB. The script must subtract the removed updates from the size of the
      // queue.
      const bytes = Number(await client.hget(keys.queueState(bot), 'bytes'));
      expect(bytes).toBeGreaterThan(rest * 99_000);
      expect(bytes).toBeLessThan(rest * 101_000);
    },
  },
  {
    ...{ script: 'updates/poll', what: 'reads large updates up to the limit in bytes', keys: queue },
    ...{ args: {}, ...poll({}), seeds: largeQueue },
    ...{ answer: ['ok', expect.toSatisfy(small), 0], changes: [state] },
  },
  {
    ...{ script: 'updates/read_outbox', what: 'reads large entries up to the limit in bytes' },
    ...{ keys: { meta: keys.meta(home), outbox: keys.outbox(home) }, args: { after: '', limit: '200' } },
    seeds: [seeds.open(home), filled(keys.outbox(home), 50, 100_000)],
    ...{ answer: ['ok', expect.toSatisfy(small), incarnation, 1], changes: [] },
  },
  {
    ...switched,
    what: 'retries the first of many failed chats at once for a new webhook',
    seeds: [seeds.open(home), hooked({ hook_set: 7 }), parked(entriesMax + 100, later)],
    ...{ answer: ['ok', 0, 1], changes: [state, retries], after: hastened(entriesMax) },
  },
  {
    ...{
      script: 'webhooks/hasten',
      what: 'retries the remaining failed chats at once',
      keys: at,
      args: { version: '9' },
    },
    seeds: [hooked({ hook_set: 9 }), parked(entriesMax - 1, later)],
    ...{ answer: ['ok', 0], changes: [retries], after: hastened(entriesMax - 1) },
  },
  {
    ...{
      script: 'webhooks/hasten',
      what: 'skips failed chats beyond the limit of one call',
      keys: at,
      args: { version: '9' },
    },
    seeds: [hooked({ hook_set: 9 }), parked(entriesMax + 1, later)],
    ...{ answer: ['ok', 1], changes: [retries], after: hastened(entriesMax) },
  },
  {
    ...{
      script: 'webhooks/hasten',
      what: 'skips chats that a worker has just leased',
      keys: at,
      args: { version: '9' },
    },
    seeds: [hooked({ hook_set: 9 }), parked(3, Date.now() + 3_000)],
    ...{ answer: ['ok', 0], changes: [] },
  },
  {
    ...{
      script: 'webhooks/hasten',
      what: 'does nothing if another webhook was set in between',
      keys: at,
      args: { version: '8' },
    },
    seeds: [hooked({ hook_set: 9 }), parked(3, later)],
    ...{ answer: ['ok', 0], changes: [] },
  },
  {
    ...{ script: 'webhooks/lease', what: 'leases a bounded number of due chats', keys: at },
    args: { bot: `${bot}`, limit: 100 },
    seeds: [seeds.open(home), hooked({ cur: 1_000 }), filled(at.queue, 1_000, 3), parked(100, 1)],
    answer: [
      ...['ok', expect.anything(), '7', '7', expect.anything()],
      expect.toSatisfy((chats) => (chats as unknown[]).length === limits.webhook_due_entries_max / 8),
    ],
    changes: [state, 'meta', due, retries],
    after: hastened(100 - limits.webhook_due_entries_max / 8),
  },
  {
    ...{ script: 'auth/renew', what: 'makes a node forget all tokens if it missed too many epochs' },
    keys: { meta: keys.meta(0), nodes: keys.authNodes(), revoked: keys.authRevoked() },
    args: { node: 'n', known: String(incarnation), acked: '1', lease_ms: '1000' },
    seeds: [
      seeds.open(0),
      seeds.hash(keys.authNodes(), { incarnation, epoch: entriesMax + 2 }),
      seeds.stream(keys.authRevoked(), entriesMax + 2),
    ],
    answer: ['ok', incarnation, entriesMax + 2, [Buffer.from('*')]],
    changes: ['auth_nodes'],
  },
  {
    ...{ script: 'chats/read_changes', what: 'reports gaps for changes beyond the limit of one call' },
    keys: {
      meta: keys.meta(home),
      changes: keys.changesRoot(home),
      chat: keys.chatRoot(home),
      message: keys.messageRoot(home),
    },
    args: { after: `${base}`, keep: '0', chats: manyChats },
    seeds: [
      seeds.open(home, { ver: base + 9 }),
      (client) =>
        client.eval(
          `for chat = 1, 300 do
             local name = '100001.' .. chat
             redis.call('HSET', KEYS[2] .. name, 'c', ARGV[2], 'p', 'p')
             for i = 1, 3 do
               redis.call('XADD', KEYS[1] .. name, ('%.0f-0'):format(ARGV[1] + i), 'p', ARGV[1], 'k', 'd', 'm', '5', 'u', '', 'x', '')
             end
             redis.call('PEXPIRE', KEYS[1] .. name, 3600000)
           end`,
          2,
          keys.changesRoot(home),
          keys.chatRoot(home),
          base,
          base + 3,
        ),
    ],
    answer: [
      'ok',
      `${base + 9}`,
      expect.toSatisfy((rows) => {
        const kinds = (rows as Buffer[][]).map(([, kind]) => String(kind));
        const gaps = kinds.filter((kind) => kind === 'gap').length;
        // For each chat, the result contains either all three changes or a gap.
        return (
          kinds.length - gaps === Math.floor(entriesMax / 3) * 3 && gaps === 300 - Math.floor(entriesMax / 3)
        );
      }),
    ],
    changes: [],
  },
  {
    ...{ script: 'chats/read_changes', what: 'reports a gap for messages beyond the limit in bytes' },
    keys: {
      meta: keys.meta(home),
      changes: keys.changesRoot(home),
      chat: keys.chatRoot(home),
      message: keys.messageRoot(home),
    },
    args: { after: `${base}`, keep: '0', chats: ['100001.1', '100001.2'] },
    seeds: [
      seeds.open(home, { ver: base + 99 }),
      (client) =>
        client.eval(
          `for chat = 1, 2 do
             local name = '100001.' .. chat
             redis.call('HSET', KEYS[2] .. name, 'c', ARGV[2], 'p', 'p')
             redis.call('SET', KEYS[3] .. name .. ':5', string.rep('x', chat == 1 and 100000 or 10))
             local last = ARGV[1]
             for i = 1, 40 do
               local version = ('%.0f'):format(ARGV[1] + i)
               redis.call('XADD', KEYS[1] .. name, version .. '-0', 'p', last, 'k', 'e', 'm', '5', 'u', '', 'x', '')
               last = version
             end
             redis.call('PEXPIRE', KEYS[1] .. name, 3600000)
           end`,
          3,
          keys.changesRoot(home),
          keys.chatRoot(home),
          keys.messageRoot(home),
          base,
          base + 40,
        ),
    ],
    answer: [
      'ok',
      `${base + 99}`,
      expect.toSatisfy((rows) => {
        const kinds = (rows as Buffer[][]).map(([chat, kind]) => `${chat} ${kind}`);
        expect(kinds).toEqual(['100001.1 gap', '100001.2 gap']);
        return bytesMax < 40 * 100_000;
      }),
    ],
    changes: [],
  },
];

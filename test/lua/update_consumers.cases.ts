/** Test cases for a poll with a consumer name. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack, unpack } from '../../src/store/core/codec.js';
import type { Case } from './cases.js';
import { consumerKeys, lapsed, stepArgs, stepped } from './consumer_world.js';
import { full, home, ids, type More, open, state, stream, three } from './update_world.js';
import { base, bot, keys, type Seed, seeds } from './world.js';

const [consumers, consumption, assigned, unsent, holders] = [
  ...['consumers', 'consumption', 'assigned', 'unsent', 'holders'],
].map((kind) => `${kind}:${bot}`) as [string, string, string, string, string];
const mine = [consumers, consumption, holders, state];

const share = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'updates/consume', what, keys: consumerKeys },
  args: stepArgs(args),
  ...more,
});
const reads = (...expected: string[]) => [
  'ok',
  expect.toSatisfy((rows) => ids(rows).join() === expected.join()),
];
const left = async (client: Redis) => (await client.xrange(keys.queue(bot), '-', '+')).map(([id]) => id);
const keeps =
  (...expected: string[]) =>
  async (client: Redis) =>
    expect(await left(client)).toEqual(expected);
const entries = (count: number, chat = (i: number) => `${bot}.${i}`): Seed[] =>
  Array.from({ length: count }, (_, i) => seeds.entry(100 + i, { c: chat(i) }));
/** A queue of `count` updates, each in a separate chat. */
const many = (count: number): Seed[] => [
  open(),
  seeds.queue({ seq: 99 + count, bytes: 1_000 }),
  ...entries(count),
];
const later = { poll: 'next' };
const theirs = { name: 'b', poll: 'theirs' };
/** Additional consumers that have a lease but no updates. */
const alsoWaiting = (...others: string[]): Seed[] =>
  others.map((name) => (client) => client.zadd(keys.consumers(bot), Date.now() + 600_000, name));
const isInOrder = (found: readonly string[]) =>
  found.length > 0 &&
  found.every((id, i) => i === 0 || Number.parseInt(found[i - 1] as string, 10) < Number.parseInt(id, 10));
const whole = ['39-0', '40-0', '41-0'];

const cases: Case[] = [
  share('reads the updates of chats without a holder', {
    seeds: three,
    answer: reads(...whole),
    changes: mine,
    async after(client) {
      expect(await client.hgetall(keys.holders(bot))).toEqual({ [`${bot}.5000000007`]: 'a 3' });
      const [kind, end] = String(await client.hget(keys.queueState(bot), 'poll')).split('*');
      expect([kind, Number(end) - Date.now()]).toEqual(['', expect.closeTo(4_000, -3)]);
      for (const key of [keys.consumers(bot), keys.consumption(bot), keys.holders(bot)])
        expect(await client.pttl(key)).toBeGreaterThan(limits.consumers_ttl_ms - 60_000);
    },
  }),
  share(
    'reads the same updates again until they are confirmed',
    { seeds: [...three, stepped()], answer: reads(...whole), changes: [consumers, consumption, state] },
    later,
  ),
  share(
    'confirms the updates below its offset that it got',
    {
      seeds: [...three, stepped()],
      answer: reads('41-0'),
      changes: [...mine, stream],
      after: keeps('41-0'),
    },
    { ...later, offset: '41' },
  ),
  share(
    'frees a chat when all its updates are confirmed',
    {
      seeds: [...three, stepped()],
      answer: reads(),
      changes: [...mine, stream],
      async after(client) {
        expect(await left(client)).toEqual([]);
        expect(await client.exists(keys.holders(bot))).toBe(0);
      },
    },
    { ...later, offset: '42' },
  ),
  share(
    'confirms nothing for an offset past the next update',
    {
      seeds: [...three, stepped()],
      answer: reads(...whole),
      changes: [consumers, consumption, state],
      after: keeps(...whole),
    },
    { ...later, offset: '43' },
  ),
  share(
    'confirms no update that another consumer got',
    {
      seeds: [...three, stepped()],
      answer: reads(),
      changes: [consumers, consumption, state],
      after: keeps(...whole),
    },
    { name: 'b', poll: 'theirs', offset: '42' },
  ),
  share(
    'confirms nothing that it has not got yet',
    { seeds: three, answer: reads(...whole), changes: mine, after: keeps(...whole) },
    { offset: '42' },
  ),
  share(
    'confirms only the update just below an offset that it repeats, since the last answer may be lost',
    {
      seeds: [...three, stepped({ offset: '41' })],
      answer: reads('39-0', '41-0'),
      changes: [...mine, stream],
      after: keeps('39-0', '41-0'),
    },
    { ...later, offset: '41' },
  ),
  share(
    'confirms nothing for an offset that is not just above an update that it got, since it may be an old one',
    {
      seeds: [...three, (client) => client.xdel(keys.queue(bot), '40-0'), stepped({ offset: '42' })],
      answer: reads('39-0', '41-0'),
      changes: [consumers, consumption, state],
      after: keeps('39-0', '41-0'),
    },
    { ...later, offset: '41' },
  ),
  share(
    'takes over the updates of a dead consumer, in order and first',
    {
      seeds: [
        ...three,
        stepped(),
        seeds.queue({ seq: 42, poll: `*${Date.now() + 600_000}` }),
        seeds.entry(42),
        lapsed('a'),
      ],
      answer: reads(...whole, '42-0'),
      changes: [consumers, consumption, holders],
      after: async (client) => expect(await client.zrange(keys.consumers(bot), '0', '-1')).toEqual(['b']),
    },
    { name: 'b', poll: 'theirs' },
  ),
  share(
    'keeps its own updates after a pause if nobody took them over',
    {
      seeds: [...three, stepped(), lapsed('a')],
      answer: reads('40-0', '41-0'),
      changes: [...mine, stream],
    },
    { ...later, offset: '40' },
  ),
  share('moves a limited number of updates at once, and reads none before all have moved', {
    seeds: [
      ...many(limits.updates_batch_max + 1),
      (client) =>
        client.eval(
          `redis.call('HSET', KEYS[1], 'cur', ARGV[1])
             for i = 100, ARGV[1] do
               redis.call('ZADD', KEYS[2], 0, ('gone:%016d:%d.%d'):format(i, ARGV[2], i - 100))
               redis.call('HSET', KEYS[3], ('%d.%d'):format(ARGV[2], i - 100), 'gone 1')
             end`,
          3,
          keys.consumption(bot),
          keys.assigned(bot),
          keys.holders(bot),
          100 + limits.updates_batch_max,
          bot,
        ),
      lapsed('gone'),
      seeds.queue({ seq: 700, poll: `*${Date.now() + 600_000}` }),
    ],
    answer: ['ok', [], 1],
    changes: [consumers, consumption, holders, assigned],
    async after(client) {
      const members = await client.zrange(keys.assigned(bot), '0', '-1');
      expect(members.filter((member) => member.startsWith('gone:'))).toHaveLength(1);
      expect(await client.zscore(keys.consumers(bot), 'gone')).toBe('0');
    },
  }),
  share(
    'gives a consumer back no chats while others take them over',
    {
      seeds: [
        ...many(2),
        stepped({ limit: '1' }),
        stepped({ name: 'b', poll: 'theirs' }),
        (client) => client.zadd(keys.consumers(bot), 0, 'a'),
      ],
      answer: ['ok', [], 1],
      changes: [...mine, assigned, unsent],
      after: async (client) => expect(await client.zrange(keys.consumers(bot), '0', '-1')).toEqual(['b']),
    },
    later,
  ),
  share('has at most as many unconfirmed updates as an answer may have', {
    seeds: many(limits.updates_batch_max + 5),
    answer: ['ok', expect.toSatisfy((rows) => (rows as unknown[]).length === limits.updates_batch_max), 0],
    changes: mine,
  }),
  share('reads large updates up to the limit in bytes', {
    seeds: [
      open(),
      seeds.queue({ seq: 140, bytes: 1 }),
      ...Array.from({ length: 40 }, (_, i) => seeds.entry(100 + i, { r: Buffer.alloc(100_000) })),
    ],
    answer: [
      'ok',
      expect.toSatisfy((rows) => {
        const bytes = (rows as unknown[]).length * 100_000;
        return bytes >= limits.script_read_bytes_max && bytes < limits.script_read_bytes_max + 200_000;
      }),
    ],
    changes: [...mine, assigned, unsent],
  }),
  share(
    'skips assigned updates that left the queue',
    {
      seeds: [...many(3), stepped({ limit: '1' }), (client) => client.xdel(keys.queue(bot), '101-0')],
      answer: reads('100-0', '102-0'),
      changes: [...mine, assigned, unsent],
    },
    later,
  ),
  share(
    'gives chats to consumers that have no updates if it has more updates than it may get',
    {
      seeds: [...many(20), stepped({ limit: '2' }), ...alsoWaiting('b')],
      answer: reads('100-0', '101-0'),
      changes: [consumers, consumption, assigned, holders, state],
      async after(client) {
        const heads = await client.zrange(keys.assigned(bot), '0', '-1');
        const holderOf = await client.hgetall(keys.holders(bot));
        expect(heads).toHaveLength(18);
        expect(new Set(heads.map((head) => head.split(':')[0]))).toEqual(new Set(['a', 'b']));
        for (const head of heads) {
          const [holder, , chat] = head.split(':') as [string, string, string];
          expect(holderOf[chat]).toBe(`${holder} 1`);
        }
        expect([holderOf[`${bot}.0`], holderOf[`${bot}.1`]]).toEqual(['a 1', 'a 1']);
      },
    },
    { ...later, limit: '2' },
  ),
  share(
    'keeps its chats if it may get all its updates',
    {
      seeds: [...many(20), stepped({ limit: '2' }), ...alsoWaiting('b')],
      answer: ['ok', expect.toSatisfy((rows) => ids(rows).length === 20)],
      changes: [consumers, consumption, assigned, unsent, state],
    },
    later,
  ),
  share(
    'keeps its chats if all other consumers have updates',
    {
      seeds: [
        ...[...many(20), stepped({ limit: '2' }), ...alsoWaiting('b')],
        seeds.hash(keys.consumption(bot), { 's:b': pack([['90', `${bot}.90`, 9]]) }),
      ],
      answer: reads('100-0', '101-0'),
      changes: [consumers, consumption, state],
    },
    { ...later, limit: '2' },
  ),
  share(
    'gives a chat away with all its unsent updates, in order',
    {
      seeds: [
        ...[open(), seeds.queue({ seq: 119, bytes: 1_000 }), ...entries(20, (i) => `${bot}.${i % 4}`)],
        ...[stepped({ limit: '1' }), ...alsoWaiting('b'), stepped({ poll: 'second', limit: '1' })],
      ],
      answer: ['ok', expect.toSatisfy((rows) => isInOrder(ids(rows)))],
      changes: [consumers, consumption, assigned, unsent, state],
      async after(client) {
        const sent = unpack<[string, string, number][]>(
          (await client.hgetBuffer(keys.consumption(bot), 's:b')) as Buffer,
        );
        const holderOf = await client.hgetall(keys.holders(bot));
        const ofB = Object.entries(holderOf).filter(([, holder]) => holder === 'b 5');
        expect(sent).toHaveLength(5 * ofB.length);
        expect(ofB.length).toBeGreaterThan(0);
      },
    },
    theirs,
  ),
  share(
    'assigns the updates again after the queue was dropped',
    {
      seeds: [...three, stepped(), (client) => client.unlink(keys.consumption(bot))],
      answer: reads(...whole),
      changes: [consumers, consumption, state],
    },
    { first: false, offset: '42' },
  ),
  share(
    'assigns the updates again after a poll without a consumer',
    {
      seeds: [...three, stepped(), seeds.queue({ poll: 'plain', bytes: 300 })],
      answer: reads(...whole),
      changes: [consumers, consumption, state],
    },
    { ...later, offset: '41' },
  ),
  share(
    'reads the queue again for the same poll, and confirms nothing',
    {
      seeds: [...three, stepped()],
      answer: reads(...whole),
      changes: [consumers, consumption, state],
    },
    { first: false, offset: '42' },
  ),
  share('moves updates older than a day to dead letters', {
    seeds: [
      open(),
      seeds.queue({ bytes: 300 }),
      seeds.entry(40, { t: `${Date.now() - limits.queue_age_ms_max - 1_000}` }),
      seeds.entry(41),
    ],
    answer: reads('41-0'),
    changes: [...mine, stream, 'journal', 'meta'],
    async after(client) {
      const [entry] = await client.xrange(keys.journal(home), '-', '+');
      expect([entry?.[0], entry?.[1][1]]).toEqual([`${base + 1}-0`, `dead:${bot}:40`]);
    },
  }),
  share(
    'stores a new mask',
    {
      seeds: three,
      answer: reads(...whole),
      changes: [...mine, 'journal', 'meta'],
      after: async (client) => expect(await client.hget(keys.queueState(bot), 'mask')).toBe('5'),
    },
    { mask: '5' },
  ),
  share(
    'refuses a new mask while the journal is full',
    { seeds: [...full(), ...three.slice(1), seeds.queue({ mask: 4 })], answer: ['journal_full'] },
    { mask: '5' },
  ),
  share('reads nothing just after a webhook was deleted, since open requests may still be acknowledged', {
    seeds: [...three, seeds.queue({ leased: Date.now() + 600_000 })],
    answer: ['ok', [], 0],
    changes: [consumers, consumption, state],
  }),
  share('says when the lease of another consumer ends', {
    seeds: [...three, stepped({ name: 'b', lease: '60000' })],
    answer: ['ok', [], 0, expect.closeTo(60_000, -4)],
    changes: [consumers, consumption],
  }),
  share('refuses one consumer too many', {
    seeds: [
      ...three,
      seeds.queue({ poll: `*${Date.now() + 600_000}` }),
      seeds.hash(keys.consumption(bot), { cur: 0 }),
      async (client) => {
        for (let i = 0; i < limits.consumers_max; i++)
          await client.zadd(keys.consumers(bot), Date.now() + 600_000, `c${i}`);
      },
    ],
    answer: ['too_many_consumers'],
  }),
  share('refuses a different run id', { seeds: three, answer: ['stale_run'] }, { run: 'other' }),
  share('reports a missing queue', { seeds: [open()], answer: ['queue_missing'] }),
  share('refuses a poll while a webhook is set', {
    seeds: [...three, seeds.queue({ hook: 'w' })],
    answer: ['webhook_active'],
  }),
  share(
    'ends a poll once a webhook was set',
    { seeds: [...three, stepped(), seeds.queue({ hook: 'w' })], answer: ['terminated_by_webhook'] },
    { first: false },
  ),
  share(
    'ends a poll that a newer poll of the same consumer replaced',
    { seeds: [...three, stepped({ poll: 'newer' })], answer: ['terminated'] },
    { first: false },
  ),
  share(
    'ends a poll that a poll without a consumer replaced',
    { seeds: [...three, stepped(), seeds.queue({ poll: 'plain' })], answer: ['terminated'] },
    { first: false },
  ),
];

const streamed = (last: number, args = {}) => ({ limit: `100 ${last}`, ...args });
/**
 * Gives update 101 to the consumer `a` in a stream. After that, `a` gets update 100, which another consumer had before.
 */
const overtaken: Seed[] = [
  open(),
  seeds.queue({ seq: 101, bytes: 1_000, poll: `*${Date.now() + 600_000}` }),
  ...entries(2),
  seeds.hash(keys.consumption(bot), { cur: 101, 'p:a': 'mine', 'o:a': 'stream 99' }),
  async (client) => {
    await client.zadd(keys.consumers(bot), Date.now() + 600_000, 'a');
    for (const i of [1, 0]) {
      await client.zadd(keys.assigned(bot), 0, `a:${String(100 + i).padStart(16, '0')}:${bot}.${i}`);
      await client.hset(keys.holders(bot), `${bot}.${i}`, 'a 1');
      await stepped(streamed(0, { first: false }))(client);
    }
  },
];
const shared = seeds.queue({ poll: `*${Date.now() + 600_000}` });
type Taken = readonly [name: string, id: number];
const taken =
  (...list: readonly Taken[]): Seed =>
  (client) =>
    client.hset(keys.consumption(bot), 'taken', pack(list));
const takenIn = async (client: Redis) =>
  unpack<Taken[]>((await client.hgetBuffer(keys.consumption(bot), 'taken')) as Buffer);
const former = Array.from({ length: limits.consumers_max }, (_, i): Taken => [`c${i}`, 9 - (i % 9)]);
const startsAbove = (id: number) => async (client: Redis) =>
  expect(await client.hget(keys.consumption(bot), 'o:a')).toBe(`stream ${id}`);
const settle = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'updates/confirm', what, keys: consumerKeys, args: { name: 'a', offset: '102', ...args } },
  ...more,
});

const streams: Case[] = [
  share(
    'sends a stream only what follows the last update that it sent',
    {
      seeds: [...three, stepped(streamed(0))],
      answer: [...reads('41-0'), 0, -1, 1, 3],
      changes: [consumers, state],
    },
    streamed(40, { first: false }),
  ),
  share(
    'sends a resumed stream what follows the last update that its client has, and confirms nothing',
    {
      seeds: [...three, stepped(streamed(0))],
      answer: reads('41-0'),
      changes: [consumers, consumption, state],
      after: keeps(...whole),
    },
    { ...later, ...streamed(40) },
  ),
  share(
    'sends a stream everything again after a poll, because the updates are not in the order of the stream',
    { seeds: [...three, stepped()], answer: reads(...whole), changes: [consumers, consumption, state] },
    { ...later, ...streamed(40) },
  ),
  share(
    'sends a stream the updates of a dead consumer after later updates',
    { seeds: overtaken, answer: reads('101-0', '100-0'), changes: [consumers, consumption] },
    { ...later, ...streamed(0) },
  ),
  share(
    'gives a poll after a stream the lowest update first',
    { seeds: overtaken, answer: reads('100-0', '101-0'), changes: [consumers, consumption] },
    later,
  ),
  share(
    'confirms for the first poll after a stream only what was sent up to its offset',
    {
      seeds: overtaken,
      answer: reads('100-0'),
      changes: [...mine, stream],
      after: keeps('100-0'),
    },
    { ...later, offset: '102' },
  ),
  share(
    'says that a stream is full, and then assigns no updates',
    {
      seeds: [...many(5), stepped({ limit: '2 0' })],
      answer: ['ok', [], 0, -1, 1, 2, 1, 0],
      changes: [consumers, state],
    },
    { first: false, limit: '2 101' },
  ),
  share(
    'refuses a later step of a stream whose consumer lost its updates to another',
    {
      seeds: [...three, stepped(streamed(0)), lapsed('a'), stepped({ name: 'b', poll: 'other' })],
      answer: ['lapsed'],
    },
    streamed(41, { first: false }),
  ),
  share(
    'remembers the highest update that was taken over from a consumer',
    {
      seeds: [...three, stepped(), lapsed('a'), taken(['a', 7], ['c', 3])],
      answer: reads(...whole),
      changes: [consumers, consumption, holders, state],
      after: async (client) =>
        expect(await takenIn(client)).toEqual([
          ['c', 3],
          ['a', 41],
        ]),
    },
    theirs,
  ),
  share(
    'remembers 64 consumers from which updates were taken over, and one update of all former consumers',
    {
      seeds: [...three, stepped(), lapsed('a'), taken(...former)],
      answer: reads(...whole),
      changes: [consumers, consumption, holders, state],
      async after(client) {
        expect(await takenIn(client)).toEqual([...former.slice(1), ['a', 41]]);
        expect(await client.hget(keys.consumption(bot), 'moved')).toBe('9');
      },
    },
    theirs,
  ),
  share(
    'trusts the order of a new stream only above the updates that were taken over from its consumer',
    {
      seeds: [...three, shared, seeds.hash(keys.consumption(bot), { cur: 0 }), taken(['a', 40], ['b', 50])],
      answer: reads(...whole),
      changes: [consumers, consumption, holders],
      after: startsAbove(40),
    },
    streamed(0),
  ),
  share(
    'trusts the order of a new stream only above the updates of former consumers',
    {
      seeds: [...three, shared, seeds.hash(keys.consumption(bot), { cur: 0, moved: 40 }), taken(['b', 50])],
      answer: reads(...whole),
      changes: [consumers, consumption, holders],
      after: startsAbove(40),
    },
    streamed(0),
  ),
  share(
    'trusts the order of a new stream only above the updates that polls of its consumer returned',
    {
      seeds: [...three, stepped({ limit: '2' })],
      answer: reads(...whole),
      changes: [consumers, consumption, state, assigned, unsent],
      after: startsAbove(40),
    },
    { ...later, ...streamed(0) },
  ),
  settle('confirms what a stream sent up to the offset', {
    seeds: overtaken,
    answer: ['ok', 0],
    changes: [consumption, holders, state, stream],
    after: keeps('100-0'),
  }),
  settle(
    'confirms what a stream sent before the update below the offset, although its id is higher',
    {
      seeds: overtaken,
      answer: ['ok', 0],
      changes: [consumption, holders, state, stream],
      async after(client) {
        expect(await left(client)).toEqual([]);
        expect(await client.exists(keys.holders(bot))).toBe(0);
      },
    },
    { offset: '101' },
  ),
  settle(
    'confirms only the update just below the offset if the consumer may have seen it before',
    {
      seeds: [...overtaken, (client) => client.hset(keys.consumption(bot), 'o:a', 'stream 101')],
      answer: ['ok', 0],
      changes: [consumption, holders, state, stream],
      after: keeps('101-0'),
    },
    { offset: '101' },
  ),
  settle(
    'confirms nothing for an offset that is not just above an update of the consumer',
    { seeds: overtaken, answer: ['ok', 0], changes: [] },
    { offset: '100' },
  ),
  settle(
    'confirms nothing for an offset past the next update',
    { seeds: overtaken, answer: ['ok', 0], changes: [] },
    { offset: '103' },
  ),
  settle(
    'confirms nothing for a negative offset',
    { seeds: three, answer: ['ok', 0], changes: [] },
    { name: '', offset: '-2' },
  ),
  settle(
    'confirms nothing of another consumer',
    { seeds: overtaken, answer: ['ok', 0], changes: [] },
    { name: 'b' },
  ),
  settle(
    'confirms after a poll only the update just below the offset, since the answer may be lost',
    {
      seeds: [...three, stepped()],
      answer: ['ok', 0],
      changes: [consumption, holders, state, stream],
      after: keeps('39-0', '41-0'),
    },
    { offset: '41' },
  ),
  settle(
    'confirms nothing of a consumer after a poll without one',
    { seeds: [...three, stepped(), seeds.queue({ poll: 'plain' })], answer: ['ok', 0], changes: [] },
    { offset: '42' },
  ),
  settle(
    'confirms without a consumer the updates below the offset',
    { seeds: three, answer: ['ok', 0], changes: [state, stream], after: keeps('41-0') },
    { name: '', offset: '41' },
  ),
  settle(
    'confirms a limited number of updates at once',
    { seeds: many(limits.script_entries_max + 1), answer: ['ok', 1], changes: [state, stream] },
    { name: '', offset: `${101 + limits.script_entries_max}` },
  ),
  settle(
    'is refused without a consumer while a consumer has a lease',
    { seeds: overtaken, answer: ['shared'] },
    { name: '' },
  ),
  settle('is refused while a webhook is set', {
    seeds: [...three, seeds.queue({ hook: 'w' })],
    answer: ['webhook_active'],
  }),
  settle('reports a missing queue', { seeds: [open()], answer: ['queue_missing'] }),
];

const renewAt = {
  ...{ meta: keys.meta(home), state: keys.queueStateRoot(home), consumers: keys.consumersRoot(home) },
  ...{ consumption: keys.consumptionRoot(home), assigned: keys.assignedRoot(home) },
};
/** Makes a case that renews the lease of the consumer `a`. `wait` is the expected answer. */
const renew = (what: string, given: readonly Seed[], wait: unknown, changes: string[] = []): Case => ({
  ...{ script: 'updates/renew', what, keys: renewAt, args: { waiting: [`${bot}`, 'a', 'mine', '4000'] } },
  ...{ seeds: given, answer: ['ok', [wait]], changes },
});
const idle: Seed[] = [open(), seeds.queue(), stepped()];
const mustStep = -2;

const renewals: Case[] = [
  {
    ...renew('renews the lease of an idle consumer', idle, -1, [consumers, state]),
    async after(client) {
      const end = Number(await client.zscore(keys.consumers(bot), 'a'));
      expect(end - Date.now()).toBeCloseTo(4_000, -3);
      expect(await client.hget(keys.queueState(bot), 'poll')).toBe(`*${end}`);
    },
  },
  renew(
    'returns when the lease of another consumer ends',
    [...idle, stepped({ name: 'b', poll: 'theirs', lease: '60000' })],
    expect.closeTo(60_000, -4),
    [consumers],
  ),
  renew('lets a consumer take over from another', [...idle, stepped({ ...theirs }), lapsed('b')], mustStep),
  renew('lets a consumer keep its chats after a pause', [...idle, lapsed('a')], mustStep),
  renew('lets a consumer read a new update', [...idle, seeds.queue({ seq: 42 }), seeds.entry(42)], mustStep),
  renew('lets a consumer with unconfirmed updates make a step', [...three, stepped()], mustStep),
  renew(
    'lets a consumer read updates that others assigned to it',
    [...idle, (client) => client.zadd(keys.assigned(bot), 0, `a:0000000000000040:${bot}.7`)],
    mustStep,
  ),
  renew('lets a replaced poll end', [...idle, stepped({ poll: 'newer' })], mustStep),
  renew(
    'lets a poll end after a poll without a consumer',
    [...idle, seeds.queue({ poll: 'plain' })],
    mustStep,
  ),
  renew('lets a poll end once a webhook was set', [...idle, seeds.queue({ hook: 'w' })], mustStep),
  renew('lets a consumer build a missing index', [open(), seeds.queue({ poll: '*9' })], mustStep),
  renew('lets a poll find a missing queue', [open()], mustStep),
  {
    ...renew('refuses a different run id', idle, -1),
    args: { waiting: [`${bot}`, 'a', 'mine', '4000'], run: 'other' },
    answer: ['stale_run'],
  },
];

export const consumerCases: readonly Case[] = [...cases, ...streams, ...renewals];

/**
 * Runs a random workload of all changing calls, with flushes and evictions in between. Afterwards the drained Postgres
 * has the same rows as Redis, and both have all acknowledged changes. This must also be true after Redis has lost all
 * data and the data were read back.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { redisLimits } from '../../src/redis/limits.js';
import { expectBuried, expectSameRows, keysLike } from '../support/rows.js';
import { startCluster, type TestCluster, type TestNode } from '../support/store.js';
import { type Acked, act, attempt, makeRooms, numbersFrom, type Room } from '../support/workload.js';

const seed = Number(process.env.PETREL_TEST_SEED ?? Date.now() % 2 ** 31);
const rounds = 6;
const callsPerRound = 40;

let cluster: TestCluster;
let nodes: [TestNode, TestNode];

/**
 * The tests raise this limit, because Redis may be silent for longer on a busy machine. Calls would then have unknown
 * outcomes.
 */
const { redis_silence_ms } = redisLimits;
const setSilence = (ms: number) => Object.assign(redisLimits, { redis_silence_ms: ms });

beforeAll(async () => {
  setSilence(30_000);
  cluster = await startCluster(3);
  nodes = await Promise.all([cluster.node(), cluster.node()]);
});
afterAll(async () => {
  setSilence(redis_silence_ms);
  await cluster?.close();
});

const client = () => nodes[0].connection.client;

/** Evicts a share of the keys that currently have a time to live. Only such keys may be evicted. */
async function evictSome(share: number, next: () => number): Promise<void> {
  const evictOne = "return redis.call('PTTL', KEYS[1]) > 0 and redis.call('DEL', KEYS[1]) or 0";
  for (const kind of ['msg', 'chat', 'post', 'acted', 'member', 'bot', 'user']) {
    const keys = (await keysLike(nodes[0], kind)).filter(() => next() < share);
    await Promise.all(keys.map((key) => client().eval(evictOne, 1, key)));
  }
}

/** Makes the queue of each bot look full, so that new updates push out pending updates. */
async function fillQueues(rooms: readonly Room[], bytes: number): Promise<void> {
  for (const { people } of rooms) {
    for (const { id, isBot } of people) {
      const key = cluster.keys.queueState(id);
      if (isBot && (await client().exists(key))) await client().hincrby(key, 'bytes', bytes);
    }
  }
}

async function expectDeadlines(): Promise<void> {
  const without: string[] = [];
  for (const kind of [
    'msg',
    'chat',
    'post',
    'acted',
    'changes',
    'req',
    'callback_query',
    'member',
    'bot',
    'user',
  ]) {
    for (const key of await keysLike(nodes[0], kind))
      if ((await client().pttl(key)) === -1) without.push(key);
  }
  expect(without).toEqual([]);
}

async function expectAcked(room: Room, { store }: TestNode): Promise<void> {
  const listed = new Map<number, Acked>();
  for (let before = 0; ; ) {
    const page = (await store.history.list(room.chat, before, 100)) ?? [];
    for (const { id, record } of page) {
      if (record.origin.service === undefined)
        listed.set(id, { content: record.content, markup: record.markup });
    }
    before = page.at(-1)?.id ?? 1;
    if (page.length < 100) break;
  }
  const acked = [...room.messages].filter(([, message]) => message !== null).sort(([a], [b]) => b - a);
  expect([...listed]).toEqual(acked);
  expect((await store.chats.find(room.chat))?.pinned).toBe(room.pinned);
  for (const [post, messageId] of room.posts) {
    const state = await attempt(store.posts.find(post, { id: 1, isBot: true }));
    if (room.messages.get(messageId) === null) {
      expect(state).toBeNull();
      continue;
    }
    const counts = new Map<string, number>();
    for (const own of room.reactions.get(post)?.values() ?? []) {
      for (const emoji of own) counts.set(emoji, (counts.get(emoji) ?? 0) + 1);
    }
    const found = state?.reactions.map(({ emoji, count, users }) => [emoji, count, users.length]).sort();
    expect(found).toEqual([...counts].map(([emoji, count]) => [emoji, count, count]).sort());
  }
}

test(`after a drain, Postgres has the rows of Redis and every acknowledged change (seed ${seed})`, async () => {
  const next = numbersFrom(seed);
  const rooms = await makeRooms(nodes[0], next);
  for (let round = 0; round < rounds; round++) {
    const filled = round === 2 ? limits.queue_bytes_max : 0;
    await fillQueues(rooms, filled);
    let busy = true;
    const acting = Promise.all(
      rooms.map(async (room) => {
        for (let n = 0; n < callsPerRound; n++) await act(nodes, room);
      }),
    ).finally(() => {
      busy = false;
    });
    // During the workload, the flusher writes entities that are changing, and Redis evicts records that are in use.
    const cooling = (async () => {
      while (busy) {
        await cluster.flush();
        await evictSome(0.5, next);
      }
    })();
    await Promise.all([acting, cooling]);
    await fillQueues(rooms, -filled);
    await cluster.flush();
    await expectSameRows(nodes[0]);
    await expectDeadlines();
    await evictSome(round === rounds - 1 ? 1 : 0.5, next);
  }
  const sum = (of: (room: Room) => number) => rooms.reduce((all, room) => all + of(room), 0);
  expect(
    sum(({ messages }) => [...messages.values()].filter((message) => message === null).length),
  ).toBeGreaterThan(20);
  expect(sum(({ reactions }) => reactions.size)).toBeGreaterThan(10);
  for (const room of rooms) await expectAcked(room, nodes[1]);
  const bots = rooms.flatMap(({ people }) => people.filter(({ isBot }) => isBot).map(({ id }) => id));
  expect(await expectBuried(nodes[0], bots)).toBeGreaterThan(0);
  expect(await nodes[0].written.query('select * from quarantine')).toEqual([]);
}, 60_000);

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  chatOf,
  hotTtlMs,
  type Node,
  openNode,
  partitionOf,
  putMessage,
  type RedisServer,
  startRedis,
} from './support.js';

let redis: RedisServer;
let node: Node;

beforeAll(async () => {
  redis = await startRedis('--maxmemory-policy', 'noeviction');
});
afterAll(() => redis?.remove());
beforeEach(async () => {
  // No script in this file needs Postgres, so no server listens at this address.
  node = await openNode(redis.url, 'postgres://nobody@127.0.0.1:1/none');
  await node.connection.client.config('SET', 'maxmemory', '0');
  await node.connection.client.flushall();
});
afterEach(() => node.close());

const chat = chatOf(100_001);
const partition = () => partitionOf(node, chat);
const runId = () => node.connection.runId() as string;

const calls = {
  recover: (expected: string, incarnation: number) =>
    node.runner.call(
      'partition/recover',
      partition(),
      { meta: node.keys.meta(partition()), journal: node.keys.journal(partition()) },
      { expected, incarnation, post: 0, high_water: 500, bytes_max: 1_000_000, installation: '' },
    ),
  heartbeat: (id: string, leaving = false) =>
    node.runner.call(
      'journal/heartbeat',
      0,
      { flushers: node.keys.flushers() },
      { id, stale_ms: 3_000, leaving },
    ),
  lease: (owner: string, ms = 3_000) =>
    node.runner.call(
      'journal/lease',
      partition(),
      { lease: node.keys.flushLease(partition()) },
      { owner, ms },
    ),
  release: (owner: string) =>
    node.runner.call('journal/release', partition(), { lease: node.keys.flushLease(partition()) }, { owner }),
  settle: (after: number, records: readonly [string, number][], states: readonly [string, number][] = []) =>
    node.runner.call(
      'journal/settle',
      partition(),
      {
        meta: node.keys.meta(partition()),
        journal: node.keys.journal(partition()),
        entities: [...records, ...states].map(([key]) => key),
      },
      {
        after: `${after}-0`,
        hot_ms: hotTtlMs,
        records: records.length,
        brief: 0,
        versions: [...records, ...states].map(([, version]) => version),
      },
    ),
  state: () =>
    node.runner.call(
      'journal/state',
      partition(),
      { meta: node.keys.meta(partition()), journal: node.keys.journal(partition()) },
      {},
    ),
};

describe('partition/recover', () => {
  it('partition/recover raises the incarnation only once', async () => {
    expect(await calls.recover(runId(), 0)).toEqual({ status: 'behind', highest: 0 });
    expect(await node.connection.client.exists(node.keys.meta(partition()))).toBe(0);
    expect(await calls.recover('another', 3)).toEqual({ status: 'moved' });
    expect(await calls.recover(runId(), 3)).toEqual({ status: 'ok', opened: true });
    expect(await calls.recover(runId(), 0)).toEqual({ status: 'ok', opened: false });
    // A second raise of the incarnation must change nothing, because versions were already given out.
    const version = await putMessage(node, chat, 1, 'x');
    expect(await calls.recover(runId(), 9)).toEqual({ status: 'ok', opened: false });
    expect(await node.connection.client.hgetall(node.keys.meta(partition()))).toEqual({
      run: runId(),
      ver: `${version}`,
      hw: '500',
      hwb: '1000000',
      post: '0',
    });
  });
});

describe('journal/heartbeat', () => {
  it('journal/heartbeat lists live flushers, and removes flushers that leave or are late', async () => {
    const { client } = node.connection;
    const flushers = node.keys.flushers();
    expect(await calls.heartbeat('a')).toEqual({ status: 'ok', live: ['a'] });
    expect((await calls.heartbeat('b')).live.sort()).toEqual(['a', 'b']);
    const now = Number((await client.time())[0]) * 1_000;
    await client.hset(flushers, 'a', now - 4_500);
    expect(await calls.heartbeat('b')).toEqual({ status: 'ok', live: ['b'] });
    expect(await client.hkeys(flushers)).toEqual(['b']);
    expect(await calls.heartbeat('b', true)).toEqual({ status: 'ok', live: [] });
    expect(await client.exists(flushers)).toBe(0);
  });
});

describe('journal/lease and journal/release', () => {
  it("only the holder of a partition's lease can renew and release it", async () => {
    const { client } = node.connection;
    const key = node.keys.flushLease(partition());
    expect(await calls.lease('a', 20_000)).toEqual({ status: 'ok' });
    expect(await calls.lease('b')).toEqual({ status: 'taken' });
    expect(await calls.lease('a', 60_000)).toEqual({ status: 'ok' });
    expect(await client.pttl(key)).toBeGreaterThan(30_000);
    await calls.release('b');
    expect(await client.get(key)).toBe('a');
    await calls.release('a');
    expect(await client.exists(key)).toBe(0);
    expect(await calls.lease('b', 60_000)).toEqual({ status: 'ok' });
    expect(await client.pttl(key)).toBeGreaterThan(30_000);
  });
});

describe('journal/settle', () => {
  it('journal/settle trims the journal up to the given id and no further', async () => {
    await calls.recover(runId(), 1);
    const versions: number[] = [];
    for (let i = 1; i <= 5; i++) versions.push(await putMessage(node, chat, i, 'x'));
    const third = versions[2] as number;
    expect(await calls.settle(third + 1, [])).toEqual({ status: 'ok', length: 2, expiring: 0 });
    expect(await calls.settle(third - 1, [])).toEqual({ status: 'ok', length: 2, expiring: 0 });
    const ids = await node.connection.client.xrange(node.keys.journal(partition()), '-', '+');
    expect(ids.map(([id]) => id)).toEqual(versions.slice(3).map((version) => `${version}-0`));
  });

  it('journal/settle sets a time to live on records with the given version', async () => {
    const { client } = node.connection;
    const { keys } = node;
    await calls.recover(runId(), 1);
    const flushed = await putMessage(node, chat, 1, 'same');
    const tombstone = await putMessage(node, chat, 2);
    const last = await putMessage(node, chat, 3, 'newer');
    const tag = keys.partitions.tag(partition());
    const odd = ['list', 'text', 'empty', 'state', 'missing'].map((name) => `${tag}:odd:${name}`);
    const [list = '', text = '', empty = '', state = ''] = odd;
    await client.rpush(list, 'x');
    await client.set(text, 'no record at all');
    await client.set(empty, '');
    await client.set(state, 'no hash');
    const result = await calls.settle(
      last + 1,
      [
        [keys.message(chat, 1), flushed],
        [keys.message(chat, 2), tombstone],
        [keys.message(chat, 3), last - 1],
        ...odd.map((key): [string, number] => [key, last]),
      ],
      [
        [keys.chat(chat), last],
        [keys.chat(chatOf(100_001, 9)), last],
        [state, last],
      ],
    );
    expect(result).toEqual({ status: 'ok', length: 0, expiring: 3 });
    for (const key of [keys.message(chat, 1), keys.message(chat, 2), keys.chat(chat)]) {
      expect(await client.pttl(key)).toBeGreaterThan(hotTtlMs - 60_000);
    }
    for (const key of [keys.message(chat, 3), list, text, empty, state])
      expect(await client.pttl(key)).toBe(-1);
    expect((await calls.settle(last + 1, [], [[keys.chat(chat), last - 1]])).expiring).toBe(0);
  });

  it('journal/settle accepts a full batch of keys', async () => {
    const states = Array.from({ length: 1_000 }, (_, i): [string, number] => [
      node.keys.chat(chatOf(100_001, i + 1)),
      1,
    ]);
    const records = states.map(([, version], i): [string, number] => [node.keys.message(chat, i), version]);
    expect(await calls.settle(5, records, states)).toEqual({ status: 'ok', length: 0, expiring: 0 });
  });
});

describe('journal/state', () => {
  it('journal/state describes a partition before and after it is opened', async () => {
    expect(await calls.state()).toEqual({
      status: 'ok',
      length: 0,
      first: null,
      version: 0,
      run: null,
      high_water: 0,
      bytes: 0,
      bytes_max: 0,
    });
    await calls.recover(runId(), 2);
    const first = await putMessage(node, chat, 1, 'x');
    const version = await putMessage(node, chat, 2, 'y');
    expect(await calls.state()).toEqual({
      status: 'ok',
      length: 2,
      first,
      version,
      run: runId(),
      high_water: 500,
      bytes: 0,
      bytes_max: 1_000_000,
    });
  });
});

describe('history/announce', () => {
  it('a flush is not announced if a Postgres server that committed it was replaced', async () => {
    const { keys, runner, connection } = node;
    const listener = connection.client.duplicate({ enableOfflineQueue: true });
    const heard: string[] = [];
    try {
      listener.on('smessage', (_: string, hint: string) => heard.push(hint));
      await listener.ssubscribe(keys.flushed());
      await connection.client.hset(keys.postgres(), 'gone:replaced', '1');
      const at = { history: keys.postgres(), flushed: keys.flushed() };
      const announce = (hint: string, ...servers: string[]) =>
        runner.call('history/announce', 0, at, { hint, servers });
      expect((await announce('1 2', 'present', 'replaced')).status).toBe('replaced');
      expect((await announce('3 7', 'present')).status).toBe('ok');
      await expect.poll(() => heard).toEqual(['3 7']);
    } finally {
      listener.disconnect();
    }
  });

  it('Redis writes no announcement to its append-only file', async () => {
    const { keys, runner, connection } = node;
    const size = async () => /aof_current_size:(\d+)/.exec(await connection.client.info('persistence'))?.[1];
    const before = await size();
    const at = { history: keys.postgres(), flushed: keys.flushed() };
    await runner.call('history/announce', 0, at, { hint: '3 7', servers: ['present'] });
    expect(await size()).toBe(before);
    await connection.client.set('any', 'thing');
    expect(await size()).not.toBe(before);
  });
});

describe('the scripts of the journal work while Redis is full', () => {
  it('every script of the journal runs while Redis is full, because these scripts free memory', async () => {
    const { client } = node.connection;
    await calls.recover(runId(), 1);
    const version = await putMessage(node, chat, 1, 'x');
    await client.hset(node.keys.meta(partition()), 'run', 'an older one');
    await client.config('SET', 'maxmemory', '1');
    try {
      await expect(client.set('any', 'thing')).rejects.toThrow(/OOM/);
      expect((await calls.recover(runId(), 2)).status).toBe('ok');
      expect((await calls.heartbeat('a')).live).toEqual(['a']);
      expect((await calls.lease('a')).status).toBe('ok');
      expect((await calls.state()).length).toBe(1);
      expect(await calls.settle(version + 1, [[node.keys.message(chat, 1), version]])).toEqual({
        status: 'ok',
        length: 0,
        expiring: 1,
      });
      expect((await calls.release('a')).status).toBe('ok');
    } finally {
      await client.config('SET', 'maxmemory', '0');
    }
  });
});

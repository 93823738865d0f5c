import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../src/errors.js';
import type { Flusher } from '../../src/journal/flusher.js';
import { Recovery } from '../../src/journal/recovery.js';
import { rewritePartitions } from '../../src/journal/rewrite.js';
import { journalState } from '../../src/journal/state.js';
import { limits } from '../../src/limits.js';
import { statement } from '../../src/postgres/pool.js';
import type { ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { messageHeader } from '../../src/store/core/codec.js';
import { systemTime } from '../../src/time.js';
import { ready_ms_max } from '../support/times.js';
import {
  bytesMax,
  chatOf,
  eventually,
  gate,
  highWater,
  journalEmpty,
  messageRows,
  type Node,
  openNode,
  type PostgresServer,
  partitionOf,
  putMessage,
  type RedisServer,
  startPostgres,
  startRedis,
  texts,
} from './support.js';

let redis: RedisServer;
let postgres: PostgresServer;
let node: Node;
let url: string;
let databases = 0;

beforeAll(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
});
afterAll(async () => {
  await Promise.all([redis?.remove(), postgres?.remove()]);
});
beforeEach(async () => {
  url = await postgres.database(`recovery_${++databases}`);
  node = await openNode(redis.url, url);
  await node.connection.client.flushall();
});
afterEach(() => node.close());

const chat = chatOf(100_001);
const partition = () => partitionOf(node, chat);
const runId = () => node.connection.runId() as string;
const meta = () => node.connection.client.hgetall(node.keys.meta(partition()));
const incarnationOf = (version: number) => Math.floor(version / limits.versions_per_incarnation);
const rows = statement('test_partitions', 'select partition, incarnation, run_id from partitions order by 1');
const registered = async () => (await node.pool.query(rows)).rows;

async function restartFrom(from: string): Promise<void> {
  const before = runId();
  await redis.stop();
  rmSync(join(redis.dir, 'appendonlydir'), { recursive: true });
  cpSync(from, join(redis.dir, 'appendonlydir'), { recursive: true });
  await redis.start();
  await eventually('reconnected', () => node.connection.runId() !== null && runId() !== before);
}

async function copyOfData(name = 'copy'): Promise<string> {
  const copy = join(redis.dir, name);
  rmSync(copy, { recursive: true, force: true });
  cpSync(join(redis.dir, 'appendonlydir'), copy, { recursive: true });
  return copy;
}

describe('partitions are recovered', () => {
  it('recovery opens a new partition under incarnation 1', async () => {
    await node.recovery.recover(partition(), runId());
    expect(await meta()).toEqual({
      run: runId(),
      ver: `${limits.versions_per_incarnation}`,
      hw: `${highWater}`,
      hwb: `${bytesMax}`,
      post: '0',
    });
    expect(await registered()).toEqual([{ partition: partition(), incarnation: 1, run_id: runId() }]);
    expect(await putMessage(node, chat, 1, 'x')).toBe(limits.versions_per_incarnation + 1);
  });

  it('if the partition was opened by the current run of Redis, recovery changes only the high-water mark', async () => {
    await node.recovery.recover(partition(), runId());
    const version = await putMessage(node, chat, 1, 'x');
    await node.connection.client.hset(node.keys.meta(partition()), 'hw', 7);
    await node.recovery.recover(partition(), runId());
    expect(await meta()).toEqual({
      run: runId(),
      ver: `${version}`,
      hw: `${highWater}`,
      hwb: `${bytesMax}`,
      post: '0',
    });
    expect((await registered())[0]?.incarnation).toBe(1);
  });

  it('recovery does nothing if the connection no longer reaches the server with the given run id', async () => {
    await node.recovery.recover(partition(), 'of another server');
    expect(await meta()).toEqual({});
    expect(await registered()).toEqual([]);
  });

  it('a node reports no new incarnation if another node has opened the partition', async () => {
    const reported: number[] = [];
    const slow: ScriptRunner = {
      ...node.runner,
      call: async (name, at, keys, args) => {
        const isRaise = name === 'partition/recover' && (args as { incarnation: number }).incarnation > 0;
        if (isRaise) await node.recovery.recover(partition(), runId());
        return node.runner.call(name, at, keys, args);
      },
    };
    const other = new Recovery({
      ...{ shards: () => node.shards, keys: node.keys, connection: node.connection, highWater, bytesMax },
      runner: () => slow,
      onRaised: (raised) => reported.push(raised.partition),
    });
    await other.recover(partition(), runId());
    expect((await registered())[0]?.incarnation).toBe(2);
    await node.connection.client.del(node.keys.meta(partition()));
    await other.recover(partition(), runId());
    expect((await registered())[0]?.incarnation).toBe(4);
    expect(reported).toEqual([]);
  });

  it('no version is given out twice after Redis loses its latest writes', async () => {
    await node.recovery.recover(partition(), runId());
    const versions: number[] = [];
    for (let i = 1; i <= 3; i++) versions.push(await putMessage(node, chat, i, `kept ${i}`));
    const copy = await copyOfData();
    for (let i = 4; i <= 9; i++) versions.push(await putMessage(node, chat, i, `lost ${i}`));
    const flusher = node.flusher();
    flusher.start();
    await flusher.stop({ drain: true });
    expect(await messageRows(node.pool)).toHaveLength(9);

    await restartFrom(copy);
    expect((await meta()).ver).toBe(`${versions[2]}`);
    await node.recovery.recover(partition(), runId());
    for (let i = 4; i <= 9; i++) versions.push(await putMessage(node, chat, i, `again ${i}`));
    expect(new Set(versions).size).toBe(versions.length);
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    expect(versions.slice(9).map(incarnationOf)).toEqual([2, 2, 2, 2, 2, 2]);
    node.flusher().start();
    await eventually('journal empty', () => journalEmpty(node));
    expect(texts(await messageRows(node.pool)).slice(2)).toEqual([
      'kept 3',
      ...[4, 5, 6, 7, 8, 9].map((i) => `again ${i}`),
    ]);
  });

  it('recovery fails with the error "unavailable" if the connection breaks during the removal of older records', async () => {
    await node.recovery.recover(partition(), runId());
    await putMessage(node, chat, 1, 'kept');
    const copy = await copyOfData();
    await putMessage(node, chat, 1, 'lost');
    const flusher = node.flusher();
    flusher.start();
    await flusher.stop({ drain: true });
    await restartFrom(copy);
    const { client } = node.connection;
    const scan = client.scan.bind(client);
    client.scan = ((...args: Parameters<typeof scan>) => {
      const page = scan(...args);
      client.stream.destroy();
      return page;
    }) as typeof scan;
    await expect(node.recovery.recover(partition(), runId())).rejects.toMatchObject({ kind: 'unavailable' });
    client.scan = scan;
    await node.connection.ready(ready_ms_max);
    await node.recovery.recover(partition(), runId());
    expect((await meta()).run).toBe(runId());
  });

  describe('Redis can lose changes that a flusher has already read', () => {
    /** Starts a flusher that has read two changes. Then Redis restarts without the second change. */
    async function loseFlush(): Promise<{ flusher: Flusher; errors: Error[]; commit: () => void }> {
      await node.recovery.recover(partition(), runId());
      const kept = await putMessage(node, chat, 1, 'kept');
      const copy = await copyOfData();
      await putMessage(node, chat, 1, 'lost');
      await putMessage(node, chat, 2, 'lost too');
      const before = gate();
      const errors: Error[] = [];
      const flusher = node.flusher({
        onStep: (step) => (step === 'read' ? before.wait() : undefined),
        onError: (error) => errors.push(error),
      });
      flusher.start();
      await before.reached;
      await restartFrom(copy);
      expect((await meta()).ver).toBe(`${kept}`);
      return { flusher, errors, commit: before.open };
    }

    /** Returns the versions of the first message in Redis and in Postgres. */
    async function versions(): Promise<[number | null, number | undefined]> {
      const record = await node.connection.client.getBuffer(node.keys.message(chat, 1));
      const row = (await messageRows(node.pool)).find(({ message_id }) => message_id === 1);
      return [record && messageHeader(record).version, row?.version];
    }

    it('a flusher reads the journal again if it commits after the incarnation was raised', async () => {
      const { flusher, errors, commit } = await loseFlush();
      await node.recovery.recover(partition(), runId());
      commit();
      await eventually('journal empty', () => journalEmpty(node));
      expect(texts(await messageRows(node.pool))).toEqual(['kept']);
      const [inRedis, inPostgres] = await versions();
      expect(inRedis).toBe(inPostgres);
      await putMessage(node, chat, 2, 'next');
      await eventually('written', async () => (await messageRows(node.pool)).length === 2);
      expect(errors.filter((error) => (error as { code?: string }).code === 'PTL03')).toEqual([]);
      expect(flusher.stats().quarantined).toBe(0);
    });

    it('if Postgres refuses one entry of a batch from an older incarnation, no part of the batch is written', async () => {
      await node.pool.query(
        statement('test_check', 'alter table messages add constraint refused check (message_id <> 2)'),
      );
      const { commit } = await loseFlush();
      await node.recovery.recover(partition(), runId());
      commit();
      await eventually('journal empty', () => journalEmpty(node));
      expect(texts(await messageRows(node.pool))).toEqual(['kept']);
    });

    it('recovery compares Redis with Postgres again if the flusher commits after the first comparison', async () => {
      const { flusher, commit } = await loseFlush();
      const slow: ScriptRunner = {
        ...node.runner,
        call: async (name, at, keys, args) => {
          const result = await node.runner.call(name, at, keys, args);
          // Recovery calls this script twice before it raises the incarnation. The first call finds that the partition
          // is closed. The flusher commits after the second call.
          if (name === 'partition/recover' && ++calls === 2) {
            commit();
            await eventually('committed', async () => (await messageRows(node.pool)).length === 2);
          }
          return result;
        },
      };
      let calls = 0;
      const { shards, keys, connection } = node;
      const recovery = new Recovery({
        ...{ shards: () => shards, keys, connection, highWater, bytesMax },
        runner: () => slow,
      });
      await recovery.recover(partition(), runId());
      expect(texts(await messageRows(node.pool))).toEqual(['lost', 'lost too']);
      expect((await versions())[0]).toBe(null);
      await flusher.stop();
      expect((await registered())[0]?.incarnation).toBe(2);
    });
  });

  describe('recovery works while the rows of a restored Postgres are being written again', () => {
    const beginRewrite = () =>
      node.pool.query(statement('test_rewrite', 'update partitions set rewrite_after = 0'));
    const flush = async () => {
      const flusher = node.flusher();
      flusher.start();
      await flusher.stop({ drain: true });
    };

    it('Postgres refuses rows that were read from Redis before the incarnation was raised', async () => {
      await node.recovery.recover(partition(), runId());
      await putMessage(node, chat, 1, 'kept');
      await flush();
      const copy = await copyOfData();
      await putMessage(node, chat, 1, 'lost');
      await beginRewrite();
      const before = gate();
      const pool: typeof node.pool = {
        ...node.pool,
        async batch(...calls) {
          await before.wait();
          return node.pool.batch(...calls);
        },
      };
      const { connection, keys, shards } = node;
      const onQuarantine = () => expect.unreachable();
      const options = { pool, shards, connection, keys, onQuarantine, time: systemTime };
      const rewriting = rewritePartitions(options, [partition()]);
      rewriting.catch(() => undefined);
      await before.reached;
      await restartFrom(copy);
      await node.recovery.recover(partition(), runId());
      before.open();
      await expect(rewriting).rejects.toMatchObject({ code: 'PTL03' });
      expect(texts(await messageRows(node.pool))).toEqual(['kept']);
      await rewritePartitions({ ...options, pool: node.pool }, [partition()]);
      expect(texts(await messageRows(node.pool))).toEqual(['kept']);
    });

    it('if Redis loses only flushed changes, its unflushed changes are kept', async () => {
      await node.recovery.recover(partition(), runId());
      await putMessage(node, chat, 1, 'only in Redis');
      await flush();
      await node.pool.query(statement('test_restore', 'delete from messages'));
      await beginRewrite();
      const copy = await copyOfData();
      await putMessage(node, chat, 2, 'lost');
      await flush();
      await restartFrom(copy);
      await node.recovery.recover(partition(), runId());
      const { connection, keys, shards, pool } = node;
      const onQuarantine = () => expect.unreachable();
      await rewritePartitions({ pool, shards, connection, keys, onQuarantine, time: systemTime }, [
        partition(),
      ]);
      expect(texts(await messageRows(node.pool))).toEqual(['only in Redis', 'lost']);
    });
  });

  describe('a seal is accepted once, after a clean shutdown', () => {
    let trusting: Node;
    const all = [0, 1, 2, 3];

    beforeEach(async () => {
      trusting = await openNode(redis.url, url, 4, true);
      await trusting.recovery.openAll(all, runId());
    });
    afterEach(() => trusting.close());

    async function restart(): Promise<void> {
      const before = runId();
      await redis.stop('SIGTERM');
      await redis.start();
      for (const each of [node, trusting])
        await eventually('reconnected', () => (each.connection.runId() ?? before) !== before);
    }

    it('a sealed Redis keeps its incarnation after the first clean shutdown, but not after the second', async () => {
      const version = await putMessage(trusting, chat, 1, 'kept');
      await trusting.recovery.seal(all);
      await restart();
      await Promise.all([trusting.recovery.openAll(all, runId()), trusting.recovery.openAll(all, runId())]);
      expect(await putMessage(trusting, chat, 2, 'next')).toBe(version + 1);
      expect((await registered()).map(({ incarnation }) => incarnation)).toEqual([1, 1, 1, 1]);
      await restart();
      await trusting.recovery.openAll(all, runId());
      expect((await registered()).map(({ incarnation }) => incarnation)).toEqual([2, 2, 2, 2]);
    });

    it('a raised incarnation makes the seal of a Redis invalid', async () => {
      await trusting.recovery.seal(all);
      expect((await meta()).run).toBe('sealed');
      await node.recovery.recover(partition(), runId());
      expect(incarnationOf(Number((await meta()).ver))).toBe(2);
      await restart();
      await trusting.recovery.openAll([partition()], runId());
      expect(incarnationOf(Number((await meta()).ver))).toBe(3);
    });

    it('the incarnation is raised if a sealed Redis may have older data', async () => {
      await trusting.recovery.seal(all);
      await restart();
      await node.recovery.openAll(all, runId());
      expect((await registered()).map(({ incarnation }) => incarnation)).toEqual([2, 2, 2, 2]);
    });

    it('the incarnation is raised if Redis starts twice on sealed data, or starts on older data', async () => {
      const unsealed = await copyOfData();
      await trusting.recovery.seal(all);
      const sealed = await copyOfData('sealed');
      await restart();
      await trusting.recovery.openAll(all, runId());
      let expected = 1;
      for (const copy of [sealed, unsealed]) {
        await restartFrom(copy);
        await eventually('reconnected', () => trusting.connection.runId() === runId());
        await trusting.recovery.openAll(all, runId());
        expect((await registered()).map(({ incarnation }) => incarnation)).toEqual(
          all.map(() => expected + 1),
        );
        expected++;
      }
    });

    it('the incarnation of a sealed Redis is raised if Redis ran with other data after the seal', async () => {
      await trusting.recovery.seal(all);
      const sealed = await copyOfData('sealed');
      await trusting.connection.client.flushall();
      await trusting.recovery.openAll(all, runId());
      await restartFrom(sealed);
      await eventually('reconnected', () => trusting.connection.runId() === runId());
      await trusting.recovery.openAll(all, runId());
      expect((await registered()).map(({ incarnation }) => incarnation)).toEqual([3, 3, 3, 3]);
    });
  });

  describe('the seal of an operator is accepted only once', () => {
    const all = [0, 1, 2, 3];
    let version: number;

    beforeEach(async () => {
      await node.recovery.openAll(all, runId());
      version = await putMessage(node, chat, 1, 'kept');
    });

    const sealed = () => node.recovery.seal(all, true);

    async function restart(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
      const before = runId();
      await redis.stop(signal);
      await redis.start();
      await eventually('reconnected', () => (node.connection.runId() ?? before) !== before);
      await node.recovery.openAll(all, runId());
    }
    const incarnations = async () => (await registered()).map(({ incarnation }) => incarnation);
    const raised = [2, 2, 2, 2];

    it('a Redis that an operator sealed keeps its incarnation after the first SHUTDOWN, but not after the second', async () => {
      await sealed();
      await restart();
      expect(await putMessage(node, chat, 2, 'next')).toBe(version + 1);
      expect(await incarnations()).toEqual([1, 1, 1, 1]);
      await restart();
      expect(await incarnations()).toEqual(raised);
    });

    it('the incarnation is raised if Redis was opened and written to after an operator had sealed it', async () => {
      await sealed();
      await node.recovery.openAll(all, runId());
      await putMessage(node, chat, 2, 'later');
      await restart();
      expect(await incarnations()).toEqual(raised);
    });

    it("the incarnation is raised if Redis was killed and lost the operator's seal", async () => {
      const tail = await copyOfData();
      await sealed();
      await redis.stop('SIGKILL');
      await redis.start();
      await restartFrom(tail);
      await node.recovery.openAll(all, runId());
      expect(await incarnations()).toEqual(raised);
    });

    it('the incarnation is raised if Redis starts a second time on data that an operator sealed', async () => {
      await sealed();
      const copy = await copyOfData('sealed');
      await restart();
      await putMessage(node, chat, 2, 'later');
      await restartFrom(copy);
      await node.recovery.openAll(all, runId());
      expect(await incarnations()).toEqual(raised);
    });

    it.each([
      ['Postgres was restarted since', "seal_postgres = seal_postgres - interval '1 second'"],
      ['the seal is older than an hour', "sealed_at = sealed_at - interval '1 hour'"],
    ])('the incarnation is raised when %s', async (_, change) => {
      await sealed();
      await node.pool.query(statement(change, `update partitions set ${change}`));
      await restart();
      expect(await incarnations()).toEqual(raised);
    });
  });

  it('the incarnation is raised each time an old copy of Redis is restored', async () => {
    await node.recovery.recover(partition(), runId());
    const first = await putMessage(node, chat, 1, 'x');
    const copy = await copyOfData();
    const versions = [first];
    for (let i = 0; i < 2; i++) {
      await restartFrom(copy);
      await node.recovery.recover(partition(), runId());
      versions.push(await putMessage(node, chat, 2, `y${i}`));
    }
    expect(versions.map(incarnationOf)).toEqual([1, 2, 3]);
  });

  it('an emptied Redis gets a higher incarnation than Postgres has, even if its run id is the same', async () => {
    await node.recovery.recover(partition(), runId());
    const before = await putMessage(node, chat, 1, 'x');
    await node.connection.client.flushall();
    await node.recovery.recover(partition(), runId());
    const after = await putMessage(node, chat, 1, 'y');
    expect([before, after].map(incarnationOf)).toEqual([1, 2]);
  });

  it('an emptied Postgres gets a higher incarnation than Redis has', async () => {
    const { client } = node.connection;
    await client.hset(node.keys.meta(partition()), {
      run: 'an older one',
      ver: `${41 * limits.versions_per_incarnation + 5}`,
      hw: '5',
    });
    await node.recovery.recover(partition(), runId());
    expect(incarnationOf(Number((await meta()).ver))).toBe(42);
    expect((await registered())[0]?.incarnation).toBe(42);
  });

  it('after the version counter is lost, new versions start above the last id of the journal', async () => {
    const { client } = node.connection;
    const journal = node.keys.journal(partition());
    await client.xadd(journal, `${7 * limits.versions_per_incarnation + 3}-0`, 'k', 'x', 'i', '');
    await client.xtrim(journal, 'MAXLEN', 0);
    await node.recovery.recover(partition(), runId());
    expect(incarnationOf(Number((await meta()).ver))).toBe(8);
    await putMessage(node, chat, 1, 'is accepted by the stream');
  });

  it('after a partition row loses its incarnation, new versions start above the watermark of the row', async () => {
    await node.pool.query(
      statement('test_row', 'insert into partitions (partition, flushed_version) values ($1, $2)'),
      [partition(), 12 * limits.versions_per_incarnation + 1],
    );
    await node.recovery.recover(partition(), runId());
    expect(incarnationOf(Number((await meta()).ver))).toBe(13);
  });

  it('if twenty nodes detect the same restart, no version is given out twice', async () => {
    await node.recovery.recover(partition(), runId());
    const before = await putMessage(node, chat, 1, 'x');
    const copy = await copyOfData();
    const others = await Promise.all(Array.from({ length: 20 }, () => openNode(redis.url, url)));
    try {
      await restartFrom(copy);
      await Promise.all(others.map((other) => other.connection.ready(ready_ms_max)));
      const versions = await Promise.all(
        others.map(async (other, i) => {
          await other.recovery.recover(partition(), runId());
          const own: number[] = [];
          for (let n = 0; n < 20; n++) own.push(await putMessage(other, chat, 10 + i, `${n}`));
          return own;
        }),
      );
      const all = [before, ...versions.flat()];
      expect(new Set(all).size).toBe(all.length);
      expect(new Set(all.slice(1).map(incarnationOf)).size).toBe(1);
      expect((await meta()).run).toBe(runId());
      const raised = Number((await registered())[0]?.incarnation);
      expect(raised).toBeGreaterThanOrEqual(2);
      // Depending on the speed of the machine, more than one node may raise the incarnation. Each node raises the
      // incarnation at most once.
      expect(raised).toBeLessThanOrEqual(1 + others.length);
    } finally {
      await Promise.all(others.map((other) => other.close()));
    }
  });

  it('recovery refuses to open an incarnation if Redis already has a version above the range of this incarnation', async () => {
    await node.connection.client.hset(node.keys.meta(partition()), {
      run: 'an older one',
      ver: `${4 * limits.versions_per_incarnation + 5}`,
      hw: '5',
    });
    const before = await meta();
    const at = { meta: node.keys.meta(partition()), journal: node.keys.journal(partition()) };
    const args = {
      expected: runId(),
      incarnation: 4,
      post: 0,
      high_water: highWater,
      bytes_max: bytesMax,
      installation: '',
    };
    expect(await node.runner.call('partition/recover', partition(), at, args)).toEqual({
      status: 'behind',
      highest: 4 * limits.versions_per_incarnation + 5,
    });
    expect(await meta()).toEqual(before);
  });

  it('recovery opens many partitions together, and opening them again works without Postgres', async () => {
    const wide = await openNode(redis.url, url, 64);
    try {
      const all = Array.from({ length: 64 }, (_, i) => i);
      await wide.recovery.openAll(all, runId());
      expect((await registered()).map((row) => row.incarnation)).toEqual(all.map(() => 1));
      const states = await journalState(wide);
      expect(states).toHaveLength(64);
      expect(states[63]).toEqual({
        partition: 63,
        length: 0,
        first: null,
        version: limits.versions_per_incarnation,
        highWater,
        bytes: 0,
        bytesMax,
        run: runId(),
        incarnation: 1,
        flushedVersion: 0,
        flushedAt: null,
      });
      await postgres.stop();
      await wide.recovery.openAll(all, runId());
    } finally {
      await postgres.start();
      await wide.close();
    }
  });

  it('while Postgres is down, recovery fails quickly with the error "unavailable"', async () => {
    await postgres.stop();
    try {
      const start = performance.now();
      const error = await node.recovery.recover(partition(), runId()).catch((e: unknown) => e);
      expect(performance.now() - start).toBeLessThan(10_000);
      expect(error).toBeInstanceOf(ApiError);
      expect(error).toMatchObject({ kind: 'unavailable', retryAfter: 1 });
      expect(await meta()).toEqual({});
    } finally {
      await postgres.start();
    }
    await node.recovery.recover(partition(), runId());
    expect(incarnationOf(Number((await meta()).ver))).toBe(1);
  });
});

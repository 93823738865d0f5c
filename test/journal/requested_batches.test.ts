/**
 * Tests the batches that the flusher writes at the request of durable calls (decision 0055). The tests check when the
 * flusher announces and settles such a batch.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FlushStep } from '../../src/journal/pipeline.js';
import { limits } from '../../src/limits.js';
import type { RaisedMark } from '../../src/postgres/marks.js';
import { type Call, type Pool, statement } from '../../src/postgres/pool.js';
import { systemRandom } from '../../src/random.js';
import { migratedDatabase } from '../support/servers.js';
import { VirtualTime } from '../support/virtual_time.js';
import {
  chatOf,
  hotTtlMs,
  messageRows,
  type Node,
  openNode,
  partitionOf,
  putMessage,
  type RedisServer,
  startRedis,
} from './support.js';

let redis: RedisServer;
let node: Node;
let time: VirtualTime;
let steps: FlushStep[];
let request: (hint: Buffer) => void;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis?.remove();
});
beforeEach(async () => {
  node = await openNode(redis.url, (await migratedDatabase()).url);
  await node.connection.client.flushall();
  await node.recovery.openAll([0, 1, 2, 3], node.connection.runId() as string);
  time = new VirtualTime();
  steps = [];
});
afterEach(async () => {
  await time.advance(10_000);
  await node.close();
});

const chat = chatOf(100_001);
const ask = () => request(Buffer.from(`${partitionOf(node, chat)}`));
const count = (step: FlushStep) => steps.filter((each) => each === step).length;
const entriesLeft = () => node.connection.client.xlen(node.keys.journal(partitionOf(node, chat)));
const timeToLive = (id: number) => node.connection.client.pttl(node.keys.message(chat, id));
const settleScripts = () =>
  node.runner.times.of('journal/settle').counts.reduce((sum, each) => sum + each, 0);

/** Starts a flusher that pauses for 40 s after its first round, which writes message 1. */
async function startPaused(options: Parameters<Node['flusher']>[0] = {}): Promise<void> {
  const listen = async (_: string, listener: (hint: Buffer) => void) => {
    request = listener;
    return () => undefined;
  };
  await putMessage(node, chat, 1, 'first round');
  const flusher = node.flusher({
    ...{ hints: { listen }, intervalMs: 10_000, time },
    onStep: (step) => void steps.push(step),
    ...options,
  });
  flusher.start();
  // The flusher empties the journal before it reports that the batch is settled.
  await expect.poll(() => count('settled')).toBe(1);
  expect(await entriesLeft()).toBe(0);
}

/** Requests a flush, and waits until the flusher has written `rows` messages in all. */
async function flush(rows: number): Promise<void> {
  const before = count('committed');
  ask();
  await expect.poll(async () => (await messageRows(node.pool)).length).toBe(rows);
  await expect.poll(() => count('committed')).toBe(before + 1);
}

describe('requested batches are settled together', () => {
  it('the batches of several requests are settled together within settle_wait_ms_max', async () => {
    await startPaused();
    const [settled, scripts] = [count('settled'), settleScripts()];
    await putMessage(node, chat, 2, 'first request');
    await flush(2);
    await time.advance(limits.settle_wait_ms_max - 1);
    await putMessage(node, chat, 3, 'second request');
    await flush(3);
    expect([await entriesLeft(), count('settled'), await timeToLive(2)]).toEqual([2, settled, -1]);
    await time.advance(1);
    await expect.poll(() => count('settled')).toBe(settled + 1);
    expect([await entriesLeft(), settleScripts()]).toEqual([0, scripts + 1]);
    for (const id of [2, 3]) expect(await timeToLive(id)).toBeGreaterThan(hotTtlMs - 60_000);
  });

  it('requested batches are settled immediately if they add up to a full batch', async () => {
    await startPaused();
    const half = limits.journal_batch_entries_max / 2;
    for (const from of [2, 2 + half]) {
      for (let id = from; id < from + half; id++) await putMessage(node, chat, id, 'x');
      await flush(from + half - 1);
    }
    await expect.poll(entriesLeft).toBe(0);
  });

  it('requested batches are settled before the flusher stops', async () => {
    await startPaused();
    await putMessage(node, chat, 2, 'requested');
    await flush(2);
    expect(await entriesLeft()).toBe(1);
    await node.stopFlushers();
    expect(await entriesLeft()).toBe(0);
  });
});

/**
 * Simulates a Postgres server for the flusher. Records the marks (change counters) that commits raise, and the
 * announcements of flushes. Both fail for the servers in the set `gone`.
 */
function fakeServer() {
  const marks: RaisedMark[] = [];
  const announced: string[] = [];
  const refuse = (servers: readonly string[]) => {
    if (servers.some((each) => fake.gone.has(each))) throw new Error('replaced');
  };
  const history = {
    random: systemRandom,
    rewriting: () => 0,
    async note(raised: readonly RaisedMark[]) {
      refuse(raised.map(({ server }) => server));
      marks.push(...raised);
    },
    async announce(servers: readonly string[], hint: string) {
      await fake.announcing;
      refuse(servers);
      announced.push(hint);
    },
  };
  let raised = 0;
  const pool = {
    ...node.pool,
    async batch(calls: Parameters<Pool['batch']>[0], last?: (server: string) => Call) {
      const { server } = fake;
      await node.pool.batch(calls);
      return last ? [{ server, shard: last(server).values[0], raised: ++raised }] : [];
    },
  };
  const control = { ...node.shards.control, pool, history } as never;
  const fake = {
    server: 'first',
    gone: new Set<string>(),
    announcing: Promise.resolve(),
    ...{ marks, announced },
    options: { shards: { ...node.shards, all: [control] }, onError: () => undefined },
  };
  return fake;
}

describe('requested batches raise one mark when they are settled', () => {
  it('if batches are settled together, the mark is raised once, before the entries leave the journal', async () => {
    const fake = fakeServer();
    await startPaused(fake.options);
    const before = fake.marks.length;
    for (const id of [2, 3]) {
      await putMessage(node, chat, id, 'requested');
      await flush(id);
    }
    expect([fake.marks.length, fake.announced.length]).toEqual([before, 2]);
    await time.advance(limits.settle_wait_ms_max);
    await expect.poll(entriesLeft).toBe(0);
    expect(fake.marks.slice(before).map(({ raised }) => raised)).toEqual([3]);
  });

  it('a batch is written again if its Postgres server was replaced after the batch was announced', async () => {
    const fake = fakeServer();
    await startPaused(fake.options);
    await putMessage(node, chat, 2, 'lost with its server');
    await flush(2);
    await node.pool.query(statement('test_lose', 'delete from messages where message_id = 2'), []);
    fake.gone.add('first');
    fake.server = 'second';
    await time.advance(limits.settle_wait_ms_max);
    expect(await entriesLeft()).toBe(1);
    await time.advance(limits.journal_retry_ms_max);
    await expect.poll(entriesLeft).toBe(0);
    expect((await messageRows(node.pool)).length).toBe(2);
    expect(fake.marks.at(-1)?.server).toBe('second');
  });

  it('a batch is not announced if the Postgres server of an earlier, unsettled batch was replaced', async () => {
    const fake = fakeServer();
    await startPaused(fake.options);
    await putMessage(node, chat, 2, 'lost with its server');
    await flush(2);
    fake.gone.add('first');
    fake.server = 'second';
    await putMessage(node, chat, 3, 'committed by its successor');
    ask();
    await expect.poll(async () => (await messageRows(node.pool)).length).toBe(3);
    await time.advance(0);
    expect([fake.announced.length, await entriesLeft()]).toEqual([1, 2]);
    await time.advance(limits.journal_retry_ms_max);
    await expect.poll(entriesLeft).toBe(0);
  });

  it('if a commit is lost with its Postgres server, later batches are announced only after the lost batch is written again', async () => {
    const fake = fakeServer();
    await startPaused(fake.options);
    let end = () => {};
    fake.announcing = new Promise((resolve) => {
      end = resolve;
    });
    await putMessage(node, chat, 2, 'lost with its server');
    ask();
    await expect.poll(async () => (await messageRows(node.pool)).length).toBe(2);
    fake.server = 'second';
    const newest = await putMessage(node, chat, 3, 'committed by its successor');
    ask();
    await expect.poll(async () => (await messageRows(node.pool)).length).toBe(3);
    fake.gone.add('first');
    end();
    await time.advance(0);
    expect([fake.announced, await entriesLeft()]).toEqual([[], 2]);
    ask();
    await time.advance(0);
    await time.advance(limits.journal_retry_ms_max);
    ask();
    await expect.poll(() => fake.announced.at(-1)).toBe(`${partitionOf(node, chat)} ${newest}`);
    await expect.poll(entriesLeft).toBe(0);
  });
});

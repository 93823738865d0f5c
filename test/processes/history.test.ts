/** Tests the history of the operations page on a real Redis: what processes add, and what readers get. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { createRequestMeter } from '../../src/obs/requests.js';
import {
  deliveryFigures,
  flushFigures,
  frontFigures,
  readHistory,
  startHistory,
} from '../../src/processes/history.js';
import { type NodeFigures, ownNode } from '../../src/processes/own_node.js';
import { systemRandom } from '../../src/random.js';
import { RunningTime } from '../support/running_time.js';
import { startCluster, type TestCluster, type TestNode } from '../support/store.js';

const { history_step_ms: step, history_points_max: places } = limits;
let cluster: TestCluster;
let node: TestNode;
beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
});
afterAll(() => cluster?.close());
beforeEach(() => node.connection.client.del(node.keys.figures()));

/** Starts to record the history of a process. `figures` returns the figures of its roles. */
function start(figures: () => NodeFigures, connection: TestNode['connection'] = node.connection) {
  const time = new RunningTime();
  const errors: unknown[] = [];
  const own = ownNode(systemRandom);
  own.figures.push(figures);
  const troubles = { onDelay: () => (error: unknown) => errors.push(error) } as never;
  const role = startHistory({ ...node, connection, node: own, time, troubles });
  return { ...role, time, errors };
}

/** Returns the sum of one figure over all points of the history. */
async function total(name: string): Promise<number> {
  const texts = Object.values(await node.connection.client.hgetall(node.keys.figures()));
  return texts
    .flatMap((text) => [...text.matchAll(/(\S+) (\d+)(?= |$)/g)])
    .reduce((sum, [, found, value]) => (found === name ? sum + Number(value) : sum), 0);
}

test('every process adds the increase of its counters to the history of the installation', async () => {
  let calls = 5;
  const first = start(() => ({ counts: { calls } }));
  const second = start(() => ({ counts: { calls: 2 }, levels: { lag_ms: 7 } }));
  await expect.poll(() => total('+calls')).toBe(7);
  calls = 9;
  first.time.skip(2 * step);
  second.time.skip(2 * step);
  await expect.poll(() => total('+calls')).toBe(11);
  expect(await total('lag_ms')).toBeGreaterThanOrEqual(7);
  await expect.poll(() => total('redis_bytes')).toBeGreaterThan(100_000);
  await first.stop();
  await second.stop();
  calls = 20;
  first.time.skip(2 * step);
  await node.connection.client.ping();
  expect(await total('+calls')).toBe(11);
  expect([...first.errors, ...second.errors]).toEqual([]);
});

test('a process adds nothing to the history while it has no verified Redis connection', async () => {
  const { client } = node.connection;
  const unused = { nodes: () => [], at: () => ({ client, runId: () => null }) } as never;
  const before = await node.connection.client.hlen(node.keys.figures());
  const role = start(() => ({ counts: { calls: 5 } }), unused);
  role.time.skip(2 * step);
  await node.connection.client.ping();
  await role.stop();
  expect([before, await node.connection.client.hlen(node.keys.figures())]).toEqual([0, 0]);
  expect(role.errors).toEqual([]);
});

/** Reads the history while the clock of Redis shows the given time. */
function read(atMs: number, afterMs = 0) {
  const client = {
    time: async () => [String(Math.floor(atMs / 1_000)), '0'],
    hmget: (key: string, ...fields: string[]) => node.connection.client.hmget(key, ...fields),
  };
  const connection = { at: () => ({ client }) } as never;
  return readHistory({ connection, keys: node.keys }, afterMs);
}

test('readers get all finished points of the last hour, or only the points after a given time', async () => {
  const current = 400_000_000;
  const seed = (number: number) =>
    node.connection.client.hset(
      node.keys.figures(),
      String(number % places),
      `${number} +calls ${number % 1_000}`,
    );
  const starts = ({ points }: Awaited<ReturnType<typeof read>>) => points.map(({ at_ms }) => at_ms / step);
  for (const age of [0, 1, 2, 719]) await seed(current - age);
  await node.connection.client.hset(
    node.keys.figures(),
    String((current - 3) % places),
    `${current - 3 - places} +calls 1`,
  );
  const now = current * step + 1_000;
  const all = await read(now);
  expect(starts(all)).toEqual([current - 719, current - 2, current - 1]);
  expect(all).toMatchObject({ at_ms: now, step_ms: step });
  expect(starts(await read(now, (current - 2) * step))).toEqual([current - 1]);
  expect(starts(await read(now, (current - 1) * step))).toEqual([]);
  expect(starts(await read(now, Number.MAX_SAFE_INTEGER))).toEqual([]);
  await seed(current + 1);
  expect(starts(await read(now + step))).toEqual([current - 2, current - 1, current]);
});

test('a point of the history has figures of fronts, workers and flushers, but not the latency of polls', async () => {
  const meter = createRequestMeter();
  for (const [call, status, ms] of [
    ['getMe', 200, 0.2],
    ['getMe', 429, 0.2],
    ['sendMessage', 400, 3],
    ['sendMessage', 503, 3],
    ['sendMessage', 0, 3],
    ['getUpdates', 200, 30_000],
    ['/api/stream', 200, 70_000],
  ] as const)
    meter.over(call, status, ms, 1);
  const roles = [
    start(() => frontFigures(meter.totals())),
    start(() => deliveryFigures({ delivered: 4, '5xx': 2, timeout: 0 })),
    start(() => flushFigures(12.4)),
  ];
  await expect
    .poll(async () => [await total('+calls'), await total('+d:5xx'), await total('lag_ms')])
    .toEqual([7, 2, 12]);
  await Promise.all(roles.map(({ stop }) => stop()));
  const fields = Object.values(await node.connection.client.hgetall(node.keys.figures()));
  // The processes may have added their figures to two different points, because a new point may have begun in between.
  const number = Number(fields[0]?.split(' ', 1));
  await node.connection.client.hset(
    node.keys.figures(),
    String(number % places),
    [number, ...fields.map((text) => text.slice(text.indexOf(' ') + 1))].join(' '),
  );
  const [point] = (await read((number + 1) * step)).points;
  expect(point).toMatchObject({
    at_ms: number * step,
    ...{ calls: 7, refused: 1, slowed: 1, failed: 1, lag_ms: 12 },
    ...{ deliveries: { delivered: 4, '5xx': 2 }, redis_bytes: expect.any(Number) },
  });
  expect(point?.times).toEqual([2, 0, 0, 3, ...new Array(12).fill(0)]);
});

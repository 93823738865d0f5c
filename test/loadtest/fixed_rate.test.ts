/**
 * Tests load at a fixed rate. If the server pauses, every request that was due in the pause has a latency that includes
 * the wait.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadAtRate } from '../../src/loadtest/fixed_rate.js';

let seen: string[] = [];
/**
 * The length in ms of a pause that begins when the server gets its next request. The server answers nothing during the
 * pause.
 */
let nextPause = 0;
let silentUntil = 0;
const server = createServer(async (request, response) => {
  seen.push(request.url ?? '');
  if (nextPause > 0) silentUntil = performance.now() + nextPause;
  nextPause = 0;
  const left = silentUntil - performance.now();
  if (left > 0) await sleep(left);
  response.statusCode = request.url === '/refused' ? 429 : 200;
  response.end('{}');
});
let origin: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const get = (path: string, rows: readonly (readonly string[])[] = [[]]) => ({
  origin,
  calls: [{ verb: 'GET' as const, path }],
  rows,
});

test('when the server pauses, the delay of every due request is measured, even on one connection', async () => {
  seen = [];
  nextPause = 800;
  const load = { rate: 100, seconds: 1, connections: 1, salt: '' };
  const { sent, answered, latency } = await loadAtRate(get('/'), load);
  expect([sent, answered]).toEqual([100, 100]);
  // Requests became due at a constant rate during the pause, so half of them waited for more than half of the pause. A
  // load generator that waits for each answer would have measured only one slow request.
  expect(latency.p50).toBeGreaterThan(200);
  expect(latency.max).toBeGreaterThan(700);
});

test('the load generator cycles through its calls and counts failures by status', async () => {
  seen = [];
  const rows = [['a'], ['b'], ['c']];
  const load = { rate: 200, seconds: 0.03, connections: 4, salt: 's' };
  await loadAtRate(get('/{1}/{pass}', rows), load);
  expect([...seen].sort()).toEqual(['/a/0', '/a/1', '/b/0', '/b/1', '/c/0', '/c/1']);
  const refused = await loadAtRate(get('/refused'), load);
  expect(refused).toMatchObject({ sent: 6, answered: 0, failed: { 429: 6 } });
});

test('the load generator stops when too many calls fail', async () => {
  // The first failure stops the load before all 20,000 requests are sent. On a slow machine, the failure may come only
  // after the requests of one second.
  const load = { rate: 2_000, seconds: 10, connections: 4, salt: '' };
  const stopped = await loadAtRate(get('/refused'), { ...load, failedShareMax: 0.01 });
  expect(stopped.sent).toBeLessThan(20_000);
  nextPause = 1_500;
  const warmed = await loadAtRate(get('/'), { ...load, rate: 100, seconds: 0.5, warmup_s: 2 });
  expect(warmed.sent).toBe(250);
  expect(warmed.latency.max).toBeLessThan(1_000);
});

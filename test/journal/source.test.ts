import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readPrefixes } from '../../src/journal/source.js';
import { limits } from '../../src/limits.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { ready_ms_max } from '../support/times.js';
import { type RedisServer, startRedis } from './support.js';

const keys = makeKeys(64);
const partitions = Array.from({ length: 64 }, (_, partition) => partition);
let redis: RedisServer;
let connection: RedisConnection;

beforeAll(async () => {
  redis = await startRedis('--appendonly', 'no');
  connection = new RedisConnection({ url: redis.url, name: 'test' });
  await connection.ready(ready_ms_max);
});
afterAll(async () => {
  await connection?.close();
  await redis?.remove();
});
beforeEach(() => connection.client.flushall());

const fill = (partition: number, count: number, bytes: number) =>
  connection.client.eval(
    `local image, from = string.rep('x', ARGV[2]), redis.call('XLEN', KEYS[1])
     for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], (from + i) .. '-0', 'k', 'msg:1.1:' .. i, 'i', image) end`,
    1,
    keys.journal(partition),
    count,
    bytes,
  );

async function read(of: readonly number[] = partitions, after = new Map<number, number>()) {
  const result = await readPrefixes(connection, keys, of, after);
  const entries = result.prefixes.flatMap((prefix) => prefix.entries);
  return { ...result, entries, bytes: entries.reduce((sum, { image }) => sum + image.length, 0) };
}

test.each([
  [1_000, 30],
  [20_000, 20],
  [78_000, 6],
])('a batch of journal entries of %i bytes each stays within the byte limit', async (size, each) => {
  for (const partition of partitions) await fill(partition, each, size);
  const batch = await read();
  expect(batch.full).toBe(true);
  // A batch may exceed its limits by one round. A round reads at least one entry from each of the 64 partitions,
  // whatever its size. The first round reads two entries from each partition.
  expect(batch.entries.length).toBeLessThanOrEqual(limits.journal_batch_entries_max + 64);
  expect(batch.bytes).toBeLessThanOrEqual(limits.journal_batch_bytes_max + 128 * size);
  expect(batch.prefixes).toHaveLength(64);
});

test('the entries of one partition can fill a whole batch, up to the limits of a batch in entries and in bytes', async () => {
  await fill(5, 2_000, 100);
  expect((await read()).entries).toHaveLength(limits.journal_batch_entries_max);
  await fill(6, 400, 78_000);
  const batch = await read([6]);
  expect(batch.bytes).toBeLessThanOrEqual(limits.journal_batch_bytes_max + 128 * 78_000);
  expect(batch.full).toBe(true);
});

test('successive batches read every journal entry once and in order', async () => {
  for (const [partition, size] of [
    [3, 200],
    [40, 50_000],
    [63, 5],
  ] as const)
    await fill(partition, 700, size);
  const after = new Map<number, number>();
  const seen = new Map<number, number[]>();
  for (let batches = 0; ; batches++) {
    const batch = await read(partitions, after);
    for (const { partition, last, entries } of batch.prefixes) {
      seen.set(partition, [...(seen.get(partition) ?? []), ...entries.map(({ version }) => version)]);
      after.set(partition, last);
    }
    if (!batch.full) break;
    expect(batches).toBeLessThan(50);
  }
  const all = Array.from({ length: 700 }, (_, i) => i + 1);
  expect([...seen].sort(([a], [b]) => a - b)).toEqual([3, 40, 63].map((partition) => [partition, all]));
});

/** Tests write-behind on a Redis Cluster while a slot is being moved to another master. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createFlusher } from '../../src/journal/flusher.js';
import { Recovery } from '../../src/journal/recovery.js';
import { createPool } from '../../src/postgres/pool.js';
import { oneShard, type Shards } from '../../src/postgres/shards.js';
import { asDatabase } from '../../src/postgres/sql.js';
import { RedisCluster } from '../../src/redis/cluster.js';
import type { RedisConnection } from '../../src/redis/connection.js';
import { Runner, type ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { type FreshCluster, freshCluster } from '../support/cluster.js';
import { migratedDatabase } from '../support/servers.js';
import { ready_ms_max } from '../support/times.js';
import {
  bytesMax,
  chatOf,
  eventually,
  highWater,
  hotTtlMs,
  messageRows,
  type Node,
  putMessage,
} from './support.js';

const keys = makeKeys(8);
const bots = Array.from({ length: 8 }, (_, i) => 100_000 + i);
const stuck = keys.partitions.of(bots[0] as number);
const others = bots.slice(1).filter((bot) => keys.partitions.of(bot) !== stuck);

let cluster: FreshCluster;
let connection: RedisCluster;
let pool: Node['pool'];
let shards: Shards;
let runner: ScriptRunner;

beforeAll(async () => {
  cluster = await freshCluster();
  connection = new RedisCluster({ seeds: [cluster.url], name: 'test', slots: keys.partitions.slots });
  pool = createPool({ url: (await migratedDatabase()).url, max: 4, name: 'test' });
  shards = oneShard(pool, asDatabase(pool), keys.partitions.count);
  const recovery = new Recovery({
    shards: () => shards,
    keys,
    connection,
    highWater,
    bytesMax,
    runner: () => runner,
  });
  runner = new Runner({ connection, recover: (partition, runId) => recovery.recover(partition, runId) });
  await connection.ready(ready_ms_max);
  for (const [partition] of keys.partitions.slots.entries())
    await recovery.openAll([partition], connection.at(partition)?.runId() as string);
});
afterAll(async () => {
  await connection?.close();
  await pool?.close();
  await cluster?.stop();
});

const masterOf = (partition: number) => connection.at(partition) as RedisConnection;
const put = (bot: number, id: number) => {
  const at = masterOf(keys.partitions.of(bot));
  return putMessage({ connection: at, runner, pool, keys } as Node, chatOf(bot), id, `text ${id}`);
};
const lengthOf = (partition: number) => masterOf(partition).client.xlen(keys.journal(partition));

test('a partition whose journal cannot be trimmed delays no other partition', async () => {
  const [bot, slot] = [bots[0] as number, keys.partitions.slots[stuck] as number];
  const [from, to] = [await cluster.ownerOf(slot), ((await cluster.ownerOf(slot)) + 1) % 3];
  for (let id = 1; id <= 30; id++) await put(bot, id);
  // Deletes the key of one message, so that neither server has the key during the move. The script that settles the
  // batch needs the keys of all messages, and therefore fails.
  await masterOf(stuck).client.del(keys.message(chatOf(bot), 1));
  await cluster.beginMove(slot, from, to);
  for (let id = 1; id <= 300; id++) await Promise.all(others.map((other) => put(other, id)));

  const refused: string[] = [];
  const flusher = createFlusher({
    ...{ connection, runner, shards, keys, hotTtlMs, intervalMs: 5 },
    onError: (error) => refused.push(error.message),
  });
  flusher.start();
  try {
    const count = others.length * 300;
    await eventually('the other partitions are settled', () => flusher.stats().entries >= count);
    expect(flusher.stats().entries).toBe(count);
    expect(await lengthOf(stuck)).toBe(30);
    // The flusher may try to settle the delayed partition only after the other partitions. Its first error may
    // therefore come late.
    await eventually('the journal could not be trimmed', () => refused.length > 0);
    await eventually('all rows are written', async () => (await messageRows(pool)).length === count + 30);

    while (!(await cluster.moveKeys(slot, from, to, 100))) await Promise.resolve();
    await cluster.endMove(slot, to);
    await eventually('the slot is settled too', () => flusher.stats().entries >= count + 30);
    expect(flusher.stats().entries).toBe(count + 30);
    // Waits until the connection knows the new master. Before that, calls already succeed, because Redis redirects
    // them.
    await eventually('the new master is known', () => masterOf(stuck).url === cluster.nodes[to]?.url);
    expect(await lengthOf(stuck)).toBe(0);
    // Only settled messages have a time to live. Every message of the delayed partition must have a time to live now.
    const { client } = masterOf(stuck);
    for (let id = 2; id <= 30; id++)
      expect(await client.pttl(keys.message(chatOf(bot), id))).toBeGreaterThan(0);
  } finally {
    await flusher.stop();
  }
}, 120_000);

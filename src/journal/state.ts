/** How far the write-behind of each partition has come, as printed by `petrel doctor`. */
import { type Pool, statement } from '../postgres/pool.js';
import { holding, type Shards } from '../postgres/shards.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';

export interface PartitionState {
  readonly partition: number;
  /** Number of entries in the journal. */
  readonly length: number;
  /** Version of the oldest entry; null for an empty journal. */
  readonly first: number | null;
  /** Last version that Redis gave out. */
  readonly version: number;
  /** Journal entries above which changes are refused; 0 while the partition was never opened. */
  readonly highWater: number;
  /** Bytes of the entries in the journal. */
  readonly bytes: number;
  /** Journal bytes above which changes are refused. */
  readonly bytesMax: number;
  /** Run id of the Redis that gives out versions of this partition. */
  readonly run: string | null;
  /** Incarnation that Postgres registered last; 0 for none. */
  readonly incarnation: number;
  /** Watermark: the greatest version that was read and is in Postgres or in quarantine. */
  readonly flushedVersion: number;
  readonly flushedAt: Date | null;
}

interface Row {
  partition: number;
  incarnation: number;
  flushed_version: number;
  flushed_at: Date | null;
}

const partitionRows = statement(
  'partition_rows',
  'select partition, incarnation, flushed_version, flushed_at from partitions where partition = any($1::int[])',
);

/** Reads the state of every partition from Redis and Postgres. Errors: `unavailable`, from either. */
export async function journalState(options: {
  readonly runner: ScriptRunner;
  readonly shards: Shards;
  readonly keys: Keys;
}): Promise<PartitionState[]> {
  const { runner, shards, keys } = options;
  const found = await Promise.all(
    holding(shards).map(
      async (shard) => (await shard.pool.query<Row>(partitionRows, [shards.owned(shard)])).rows,
    ),
  );
  const byPartition = new Map(found.flat().map((row) => [row.partition, row]));
  return Promise.all(
    Array.from({ length: keys.partitions.count }, async (_, partition) => {
      const at = { meta: keys.meta(partition), journal: keys.journal(partition) };
      const redis = await runner.call('journal/state', partition, at, {});
      const row = byPartition.get(partition);
      return {
        partition,
        length: redis.length,
        first: redis.first,
        version: redis.version,
        highWater: redis.high_water,
        bytes: redis.bytes,
        bytesMax: redis.bytes_max,
        run: redis.run,
        incarnation: row?.incarnation ?? 0,
        flushedVersion: row?.flushed_version ?? 0,
        flushedAt: row?.flushed_at ?? null,
      };
    }),
  );
}

const quarantined = statement(
  'quarantined',
  'select count(*) as count from quarantine where partition = any($1::int[])',
);

/** Counts the entries of these partitions that are in quarantine. */
export async function quarantinedIn(pool: Pool, partitions: readonly number[]): Promise<number> {
  return (await pool.query<{ count: number }>(quarantined, [partitions])).rows[0]?.count ?? 0;
}

/**
 * The last time that Redis was found to have lost changes, the number of partitions concerned, and the last flush
 * before it.
 */
export interface RedisLoss {
  readonly at: string;
  readonly partitions: number;
  readonly flushed_at: string | null;
}

const redisLoss = statement('redis_loss', "select value from installation where name = 'redis_lost'");

/** Returns the last loss of Redis; null if there was none. */
export async function lastLoss(pool: Pool): Promise<RedisLoss | null> {
  const [row] = (await pool.query<{ value: string }>(redisLoss)).rows;
  return row === undefined ? null : (JSON.parse(row.value) as RedisLoss);
}

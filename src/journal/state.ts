/** Tells `petrel doctor` how far each partition's journal has been written to Postgres. */
import type { Pool } from '../postgres/pool.js';
import { holding, type Shards } from '../postgres/shards.js';
import { plainSql } from '../postgres/sql.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';

export interface PartitionState {
  readonly partition: number;
  readonly length: number;
  readonly first: number | null;
  /** The last version that Redis assigned. */
  readonly version: number;
  /** The limit of the journal in entries, or 0 if the partition was never opened. */
  readonly highWater: number;
  readonly bytes: number;
  readonly bytesMax: number;
  /** The run id of the Redis server that assigns versions in this partition. */
  readonly run: string | null;
  /** The last incarnation that was registered in Postgres, or 0 if there is none. */
  readonly incarnation: number;
  /** The watermark of the partition. Every version up to the watermark is in Postgres or in quarantine. */
  readonly flushedVersion: number;
  readonly flushedAt: Date | null;
}

interface Row {
  readonly partition: number;
  readonly incarnation: number;
  readonly flushed_version: number;
  readonly flushed_at: Date | null;
}

/** Returns the state of every partition's journal. Error: `unavailable` if Redis or Postgres is unavailable. */
export async function journalState(options: {
  readonly runner: ScriptRunner;
  readonly shards: Shards;
  readonly keys: Keys;
}): Promise<PartitionState[]> {
  const { runner, shards, keys } = options;
  const found = await Promise.all(
    holding(shards).map(
      (shard) => plainSql(shard.pool).rows<Row>`
        select partition, incarnation, flushed_version, flushed_at from partitions
        where partition = any(${shards.owned(shard)}::int[])`,
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

export const quarantinedIn = (pool: Pool, partitions: readonly number[]) => plainSql(pool).value<number>`
  select count(*) from quarantine where partition = any(${partitions}::int[])`;

/**
 * The time of the last detected data loss of Redis, the number of partitions that lost data, and the time of the last
 * flush before the loss.
 */
export interface RedisLoss {
  readonly at: string;
  readonly partitions: number;
  readonly flushed_at: string | null;
}

export async function lastLoss(pool: Pool): Promise<RedisLoss | null> {
  const value = await plainSql(pool).firstValue<string>`
    select value from installation where name = 'redis_lost'`;
  return value === undefined ? null : JSON.parse(value);
}

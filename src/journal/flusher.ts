/**
 * Writes journals to Postgres in the background. A flusher takes leases on partitions and runs one loop per shard, so
 * that a shard that is unavailable or slow delays only its own partitions.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.js';
import type { Shard, Shards } from '../postgres/shards.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import type { Change } from './batch.js';
import { createHotBudget } from './hot_budget.js';
import { createLeases } from './leases.js';
import { createPipeline, type FlushStep } from './pipeline.js';
import { rewritePartitions } from './rewrite.js';
import { createUpkeep } from './upkeep.js';
import type { OnQuarantine } from './write.js';

export interface FlusherOptions {
  /** Days for which audit entries are kept: setting AUDIT_DAYS. */
  readonly auditDays?: number;
  /** Days for which messages are kept: setting MESSAGE_DAYS. */
  readonly messageDays?: number | undefined;
  readonly connection: RedisServers;
  readonly runner: ScriptRunner;
  readonly shards: Shards;
  readonly keys: Keys;
  /** Time in ms for which flushed entities stay in Redis: setting HOT_TTL_MS. */
  readonly hotTtlMs: number;
  /** Setting HOT_BYTES_PER_BOT; without it messages in Redis are not bounded by bytes. */
  readonly hotBytesPerBot?: number;
  /**
   * Setting FLUSH_INTERVAL_MS: the least time between two reads that find no entries, and a quarter of the least time
   * between a batch that was not full and the next one.
   */
  readonly intervalMs: number;
  /** Id of this flusher, unique among flushers; generated when absent. */
  readonly id?: string;
  /** Called with every failure; the flusher continues without help. */
  readonly onError?: (error: Error) => void;
  readonly onQuarantine?: OnQuarantine;
  /**
   * Called with the changes that a batch wrote to Postgres, possibly more than once for one change. Must neither
   * throw nor take long.
   */
  readonly onWritten?: (changes: readonly Change[]) => void;
  /** Awaited at each step of each batch, so that a test can stop the flusher there. */
  readonly onStep?: (step: FlushStep) => Promise<void> | void;
}

export interface FlusherStats {
  /** Journal entries that are written to Postgres and removed from the journal. */
  readonly entries: number;
  readonly batches: number;
  /** Rows sent to Postgres: the newest version of each entity of each batch. */
  readonly rows: number;
  readonly quarantined: number;
  /** Times the loop gave up the batches in flight, or could not settle a partition. */
  readonly failures: number;
  /** Entities that were written again after Postgres was restored to an earlier state. */
  readonly rewritten: number;
  /** Tombstones that were deleted because of their age. */
  readonly purged: number;
  /** Every entry older than this, in the partitions under lease, is in Postgres. */
  readonly lagMs: number;
  /** Number of partitions under lease. */
  readonly partitions: number;
  /** Entries left in the journal of each partition under lease when it was last settled. */
  readonly lengths: ReadonlyMap<number, number>;
  /**
   * Future days for which the tables of delivery failures and of messages have a partition; NaN before the first
   * check.
   */
  readonly daysAhead: number;
  readonly messageDaysAhead: number;
}

export interface Flusher {
  start(): void;
  /**
   * Ends the loop after the batch in flight, or with `drain` once the journals under lease are empty; then returns
   * the leases. Resolves after `msMax` (default limits.shutdown_ms_max) at the latest. Entries that are left stay in
   * the journal.
   */
  stop(options?: { readonly drain?: boolean; readonly msMax?: number }): Promise<void>;
  stats(): FlusherStats;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Creates a flusher; it is idle until `start`. */
export function createFlusher(options: FlusherOptions): Flusher {
  const { connection, runner, shards, keys } = options;
  const onError = options.onError ?? (() => {});
  const leases = createLeases({ runner, keys, id: options.id ?? randomUUID(), onError });
  const counts = { quarantined: 0, rewritten: 0 };
  const onQuarantine: OnQuarantine = (entry, reason) => {
    counts.quarantined++;
    options.onQuarantine?.(entry, reason);
  };
  const heldOf = (shard: Shard) => () => {
    const held = leases.held();
    if (shards.all.length === 1) return held;
    const own = new Set(shards.owned(shard));
    return held.filter((partition) => own.has(partition) && !shards.isPaused(partition));
  };
  const budget = createHotBudget(options.hotBytesPerBot ?? 0, options.hotTtlMs);
  const pipelines = shards.all.map((shard) =>
    createPipeline({ ...options, budget, shard, held: heldOf(shard), onError, onQuarantine }),
  );
  const upkeeps = shards.all.map((shard) => {
    const { pool, id } = shard;
    const holds = () => ({ control: id === 0, sharded: id !== 0 || shards.owned(shard).length > 0 });
    return createUpkeep({ ...options, pool, holds, onError });
  });
  let done: Promise<unknown> = Promise.resolve();

  const rewriting = new Set<Shard>();
  const rewriteTimer = setInterval(() => {
    for (const shard of shards.all) {
      if (rewriting.has(shard) || !shard.history?.rewriting() || leases.held().length === 0) continue;
      rewriting.add(shard);
      rewritePartitions({ pool: shard.pool, shards, connection, keys, onQuarantine }, leases.held())
        .then((written) => {
          counts.rewritten += written;
        })
        .catch(onError)
        .finally(() => rewriting.delete(shard));
    }
    // Another check, which runs equally often, sets the flag.
  }, limits.postgres_check_ms);
  rewriteTimer.unref();

  return {
    start() {
      done = leases.start().then(() => Promise.all(pipelines.map((pipeline) => pipeline.run())));
      for (const upkeep of upkeeps) upkeep.start();
    },
    async stop({ drain = false, msMax = limits.shutdown_ms_max } = {}) {
      for (const upkeep of upkeeps) upkeep.stop();
      clearInterval(rewriteTimer);
      for (const pipeline of pipelines) pipeline.stop(drain ? 'drain' : 'now');
      const bound = new AbortController();
      const finished = done.then(() => leases.leave()).catch(onError);
      await Promise.race([finished, sleep(msMax, null, { signal: bound.signal }).catch(() => {})]);
      bound.abort();
      for (const pipeline of pipelines) pipeline.stop('now');
    },
    stats() {
      const each = pipelines.map((pipeline) => pipeline.stats());
      const kept = upkeeps.map((upkeep) => upkeep.stats());
      const least = (ahead: readonly number[]) => {
        const known = ahead.filter((days) => !Number.isNaN(days));
        return known.length > 0 ? Math.min(...known) : Number.NaN;
      };
      return {
        ...counts,
        entries: sum(each.map(({ entries }) => entries)),
        batches: sum(each.map(({ batches }) => batches)),
        rows: sum(each.map(({ rows }) => rows)),
        failures: sum(each.map(({ failures }) => failures)),
        purged: sum(kept.map(({ purged }) => purged)),
        daysAhead: least(kept.map(({ daysAhead }) => daysAhead)),
        messageDaysAhead: least(kept.map(({ messageDaysAhead }) => messageDaysAhead)),
        lagMs: Math.max(...each.map(({ lagMs }) => lagMs)),
        partitions: leases.held().length,
        lengths: new Map(each.flatMap(({ lengths }) => [...lengths])),
      };
    },
  };
}

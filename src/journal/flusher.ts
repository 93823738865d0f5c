/**
 * Writes journals behind to Postgres: takes leases on partitions, and runs a loop for each shard, so that a shard that is away or slow
 * holds up none but its own partitions.
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
  /** Setting AUDIT_DAYS. */
  readonly auditDays?: number;
  /** Setting MESSAGE_DAYS. */
  readonly messageDays?: number | undefined;
  readonly connection: RedisServers;
  readonly runner: ScriptRunner;
  readonly shards: Shards;
  readonly keys: Keys;
  /** Setting HOT_TTL_MS. */
  readonly hotTtlMs: number;
  /** Setting HOT_BYTES_PER_BOT; no bound if absent. */
  readonly hotBytesPerBot?: number;
  /** Setting FLUSH_INTERVAL_MS: the least time from one look that finds nothing to the next, and a quarter of the
   * least time from a batch that was not full to the next. */
  readonly intervalMs: number;
  /** Unique among flushers; made up when absent. */
  readonly id?: string;
  /** Told of every failure; the flusher goes on by itself. */
  readonly onError?: (error: Error) => void;
  readonly onQuarantine?: OnQuarantine;
  /** Told of what a batch has brought to Postgres, perhaps not for the first time; must neither throw nor take long. */
  readonly onWritten?: (changes: readonly Change[]) => void;
  /** Awaited at each step of each batch: a test holds the flusher there. */
  readonly onStep?: (step: FlushStep) => Promise<void> | void;
}

export interface FlusherStats {
  /** Journal entries that were settled. */
  readonly entries: number;
  readonly batches: number;
  /** Rows that were sent to Postgres: the newest version of each entity of a batch. */
  readonly rows: number;
  readonly quarantined: number;
  /** Times the loop gave up what was in flight, or could not settle a partition. */
  readonly failures: number;
  /** Entities that were written again after Postgres went back. */
  readonly rewritten: number;
  /** Tombstones that were deleted for their age. */
  readonly purged: number;
  /** Everything that was journaled longer ago than this is in Postgres, for the partitions under lease. */
  readonly lagMs: number;
  /** Under lease. */
  readonly partitions: number;
  /** Entries left in each journal under lease when it was last settled. */
  readonly lengths: ReadonlyMap<number, number>;
  /** Days to come that have a partition for failures of deliveries, and for messages; not a number before it has looked. */
  readonly daysAhead: number;
  readonly messageDaysAhead: number;
}

export interface Flusher {
  start(): void;
  /** Ends the loop after the batch in flight, or with `drain` once the journals under lease are empty; gives the
   * leases back. Resolves after `msMax` (default limits.shutdown_ms_max) at the latest: what is left stays journaled. */
  stop(options?: { readonly drain?: boolean; readonly msMax?: number }): Promise<void>;
  stats(): FlusherStats;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Makes a flusher; it does nothing before `start`. */
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
    // The flag is set by a look that comes as often.
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

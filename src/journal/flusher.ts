/**
 * Writes journals to Postgres in the background. A flusher takes leases on partitions. It runs one loop per shard, so
 * that a slow shard delays only its own partitions.
 */
import { isOlderFlush } from '../postgres/pool.js';
import type { Shard, Shards } from '../postgres/shards.js';
import { type Random, systemRandom } from '../random.js';
import type { RedisServers } from '../redis/connection.js';
import type { Hints } from '../redis/hints.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { ruleLimits } from '../rules/limits.js';
import type { Keys } from '../store/core/keys.js';
import { systemTime, type Time } from '../time.js';
import { createAsked } from './asked.js';
import type { Change } from './batch.js';
import { createHotBudget } from './hot_budget.js';
import { createLeases } from './leases.js';
import { journalLimits as limits } from './limits.js';
import { createMaintenance } from './maintenance.js';
import { type FlushStep, Pipeline, type PipelineStats } from './pipeline.js';
import { rewritePartitions } from './rewrite.js';
import type { OnQuarantine } from './write.js';

export interface FlusherOptions {
  readonly auditDays?: number;
  readonly messageDays?: number | undefined;
  readonly updatesDays?: number | undefined;
  readonly connection: RedisServers;
  readonly runner: ScriptRunner;
  readonly shards: Shards;
  readonly keys: Keys;
  /** Lets callers request a flush. If absent, durable calls wait until the flusher reads their journal by itself. */
  readonly hints?: Pick<Hints, 'listen'>;
  readonly hotTtlMs: number;
  /** The setting HOT_BYTES_PER_BOT. If absent, the bytes of messages in Redis are unbounded. */
  readonly hotBytesPerBot?: number;
  /**
   * The minimum time between two reads that find no entries (setting FLUSH_INTERVAL_MS). After a batch that was not
   * full, the flusher waits at least four times as long.
   */
  readonly intervalMs: number;
  /** The flusher's unique id. Generated if absent. */
  readonly id?: string;
  readonly time?: Time;
  readonly random?: Random;
  /** Called with the error of each failed flush. The flusher retries by itself. */
  readonly onError?: (error: Error) => void;
  readonly onQuarantine?: OnQuarantine;
  /**
   * Called with the changes that a batch wrote to Postgres. A change may be passed more than once. Must not throw and
   * must return quickly.
   */
  readonly onWritten?: (changes: readonly Change[]) => void;
  /** Called at each step of each batch. The flusher waits for the result, so that a test can stop the flusher here. */
  readonly onStep?: (step: FlushStep) => Promise<void> | void;
}

export interface FlusherStats extends PipelineStats {
  readonly quarantined: number;
  readonly rewritten: number;
  /** The number of tombstones that were deleted because they were too old. */
  readonly purged: number;
  readonly partitions: number;
  /**
   * The number of future days for which the tables have partitions: `daysAhead` for delivery failures, and
   * `messageDaysAhead` for messages. NaN before the first check.
   */
  readonly daysAhead: number;
  readonly messageDaysAhead: number;
}

export type Flusher = ReturnType<typeof createFlusher>;

const total = <N extends string>(stats: readonly Readonly<Record<N, number>>[], name: N): number =>
  stats.reduce((sum, each) => sum + each[name], 0);

function least<N extends string>(stats: readonly Readonly<Record<N, number>>[], name: N): number {
  const known = stats.map((each) => each[name]).filter((days) => !Number.isNaN(days));
  return known.length > 0 ? Math.min(...known) : Number.NaN;
}

/** Returns the leased partitions that belong to the shard. */
function heldIn(shards: Shards, shard: Shard, held: readonly number[]): readonly number[] {
  if (shards.all.length === 1) return held;
  const own = new Set(shards.owned(shard));
  return held.filter((partition) => own.has(partition) && !shards.isPaused(partition));
}

/** Creates a flusher, which is idle until `start`. */
export function createFlusher(options: FlusherOptions) {
  const { connection, runner, shards, keys, time = systemTime, random = systemRandom } = options;
  const onError = options.onError ?? (() => {});
  const leases = createLeases({ runner, keys, id: options.id ?? random.uuid(), onError, time });
  const counts = { quarantined: 0, rewritten: 0 };
  const onQuarantine: OnQuarantine = (entry, reason) => {
    counts.quarantined++;
    options.onQuarantine?.(entry, reason);
  };
  const asked = createAsked({ hints: options.hints, runner, keys, time, held: leases.held });
  const budget = createHotBudget(options.hotBytesPerBot ?? 0, options.hotTtlMs, time);
  const pipelines = shards.all.map(
    (shard) =>
      new Pipeline({
        ...{ ...options, time, random },
        ...{ asked, budget, shard, held: () => heldIn(shards, shard, leases.held()), onError, onQuarantine },
      }),
  );
  const maintenance = shards.all.map((shard) => {
    const { pool, id } = shard;
    const holds = () => ({ control: id === 0, sharded: id !== 0 || shards.owned(shard).length > 0 });
    return createMaintenance({ ...options, pool, holds, onError, time });
  });
  let done: Promise<unknown> = Promise.resolve();

  const rewriting = new Set<Shard>();
  async function rewrite(shard: Shard): Promise<void> {
    const held = leases.held();
    if (rewriting.has(shard) || !shard.history?.rewriting() || held.length === 0) return;
    rewriting.add(shard);
    const found = { pool: shard.pool, shards, connection, keys, onQuarantine, time };
    const written = await rewritePartitions(found, held).finally(() => rewriting.delete(shard));
    counts.rewritten += written;
  }
  // If a check of an open Postgres connection finds that Postgres has lost changes, the check records what to rewrite.
  // Looks for such records as often as the connections are checked.
  const stopRewriting = time.repeat(limits.postgres_check_ms, () => {
    for (const shard of shards.all) rewrite(shard).catch((error) => isOlderFlush(error) || onError(error));
  });

  return {
    start() {
      asked.start();
      done = leases.start().then(() => Promise.all(pipelines.map((pipeline) => pipeline.run())));
      for (const each of maintenance) each.start();
    },
    /**
     * Stops the loops after their current batches. With `drain`, stops them only when the leased journals are empty.
     * Then releases the leases. Resolves within `msMax` (default ruleLimits.shutdown_ms_max). Remaining entries stay in
     * the journal.
     */
    async stop({ drain = false, msMax = ruleLimits.shutdown_ms_max as number } = {}) {
      for (const each of maintenance) each.stop();
      stopRewriting();
      asked.close();
      for (const pipeline of pipelines) pipeline.stop(drain ? 'drain' : 'now');
      await time.within(msMax, done.then(() => leases.leave()).catch(onError));
      for (const pipeline of pipelines) pipeline.stop('now');
    },
    stats(): FlusherStats {
      const each = pipelines.map((pipeline) => pipeline.stats());
      const kept = maintenance.map((shard) => shard.stats());
      return {
        ...counts,
        entries: total(each, 'entries'),
        batches: total(each, 'batches'),
        rows: total(each, 'rows'),
        failures: total(each, 'failures'),
        purged: total(kept, 'purged'),
        daysAhead: least(kept, 'daysAhead'),
        messageDaysAhead: least(kept, 'messageDaysAhead'),
        lagMs: Math.max(...each.map(({ lagMs }) => lagMs)),
        partitions: leases.held().length,
        lengths: new Map(each.flatMap(({ lengths }) => [...lengths])),
      };
    },
  };
}

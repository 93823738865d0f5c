/**
 * The write-behind loop: read the starts of the journals under lease, write one batch, commit, and only then settle.
 * While one batch is written the one before is settled and the next is made ready, so that Postgres never waits for the
 * reading of Redis; batches are written one at a time, so that commits, watermarks and trims all come in the order of the
 * journal. A partition that cannot be settled is set aside and read again from its start. When anything else fails, everything in
 * flight is given up and read again from the start: a batch may be written any number of times.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.js';
import type { Pool } from '../postgres/pool.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts.js';
import type { Keys } from '../store/core/keys.js';
import type { Change } from './batch.js';
import type { History } from './history.js';
import { createHotBudget } from './hot_budget.js';
import { createIdleWait } from './idle.js';
import { createLeases } from './leases.js';
import { rewritePartitions } from './rewrite.js';
import { settlePrefixes } from './settle.js';
import { type ReadResult, readPrefixes } from './source.js';
import { createUnsettled } from './unsettled.js';
import { createUpkeep } from './upkeep.js';
import { type OnQuarantine, type PreparedBatch, prepareBatch, writeBatch } from './write.js';

/** Where a batch is: read but not written, committed but still in the journal, settled. */
export type FlushStep = 'read' | 'committed' | 'settled';

export interface FlusherOptions {
  /** Setting AUDIT_DAYS. */
  readonly auditDays?: number;
  /** Setting MESSAGE_DAYS. */
  readonly messageDays?: number | undefined;
  readonly connection: RedisServers;
  readonly runner: ScriptRunner;
  readonly pool: Pool;
  readonly keys: Keys;
  /** Recognises a Postgres that went back; what Redis still holds is then written again. */
  readonly history?: Pick<History, 'note' | 'rewriting'>;
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
  /** Days to come that have a partition for failures of deliveries; not a number before it has looked. */
  readonly daysAhead: number;
}

export interface Flusher {
  start(): void;
  /** Ends the loop after the batch in flight, or with `drain` once the journals under lease are empty; gives the
   * leases back. Resolves after `msMax` (default limits.shutdown_ms_max) at the latest: what is left stays journaled. */
  stop(options?: { readonly drain?: boolean; readonly msMax?: number }): Promise<void>;
  stats(): FlusherStats;
}

interface ReadAt extends ReadResult {
  /** By the monotonic clock, in ms. */
  readonly at: number;
}

interface InFlight {
  readonly partitions: ReadonlySet<number>;
  readonly committed: Promise<void>;
  readonly settled: Promise<void>;
}

/**
 * After a batch that was not full a flusher rests so many intervals. At a steady rate more rows then share what a batch costs
 * besides them, which is most of its cost: a script a partition, a transaction, and a flush to disk of each server.
 */
const rests_after_batch = 4;
/** One batch that is settled, one that is written, and one that is ready. */
const in_flight_max = 3;
/** Makes a flusher; it does nothing before `start`. */
export function createFlusher(options: FlusherOptions): Flusher {
  const { connection, runner, pool, keys, hotTtlMs, intervalMs } = options;
  const onError = options.onError ?? (() => {});
  const step = async (name: FlushStep) => options.onStep?.(name);
  const leases = createLeases({ runner, keys, id: options.id ?? randomUUID(), onError });
  const counts = { entries: 0, batches: 0, rows: 0, quarantined: 0, failures: 0, rewritten: 0 };
  /** When a partition was last read to its end, of those under lease. */
  const caughtUpAt = new Map<number, number>();
  const lengths = new Map<number, number>();
  const unsettled = createUnsettled();
  const budget = createHotBudget(options.hotBytesPerBot ?? 0, hotTtlMs);
  /** Last version of each partition that is in flight. */
  const cursors = new Map<number, number>();
  let inFlight: InFlight[] = [];
  let stopping: 'no' | 'drain' | 'now' = 'no';
  const waking = new AbortController();
  let done: Promise<void> = Promise.resolve();
  const upkeep = createUpkeep({ ...options, onError });
  const idleWait = createIdleWait(connection, keys);
  /** No journal under lease has an entry: Redis will say when one does. */
  let waiting = false;

  const onQuarantine: OnQuarantine = (entry, reason) => {
    counts.quarantined++;
    options.onQuarantine?.(entry, reason);
  };

  let rewriting = false;
  const rewriteTimer = setInterval(async () => {
    if (rewriting || !options.history?.rewriting() || leases.held().length === 0) return;
    rewriting = true;
    await rewritePartitions({ pool, connection, keys, onQuarantine }, leases.held())
      .then((written) => {
        counts.rewritten += written;
      })
      .catch(onError);
    rewriting = false;
    // The flag is set by a look that comes as often.
  }, limits.postgres_check_ms);
  rewriteTimer.unref();

  async function rest(ms: number): Promise<void> {
    if (stopping !== 'now' && ms > 0) await sleep(ms, null, { signal: waking.signal }).catch(() => {});
  }

  const isInFlight = (partition: number) => inFlight.some(({ partitions }) => partitions.has(partition));

  async function read(): Promise<ReadAt> {
    const at = performance.now();
    const held = leases.held();
    const known = new Set(held);
    for (const partition of caughtUpAt.keys()) if (!known.has(partition)) caughtUpAt.delete(partition);
    for (const partition of lengths.keys()) if (!known.has(partition)) lengths.delete(partition);
    for (const partition of held) if (!caughtUpAt.has(partition)) caughtUpAt.set(partition, at);
    for (const partition of unsettled.takeBack(isInFlight)) cursors.delete(partition);
    const readable = held.filter((partition) => !unsettled.has(partition));
    return { ...(await readPrefixes(connection, keys, readable, cursors)), at };
  }

  function caughtUp(partitions: readonly number[], at: number): void {
    for (const partition of partitions) if (!unsettled.has(partition)) caughtUpAt.set(partition, at);
  }

  function begin(batch: ReadAt, prepared: PreparedBatch): InFlight {
    const before = inFlight.at(-1);
    for (const { partition, last } of batch.prefixes) cursors.set(partition, last);
    const write = async () => {
      await before?.committed;
      await step('read');
      const outcome = await writeBatch(pool, prepared, onQuarantine, options.history);
      await step('committed');
      options.onWritten?.(outcome.changes);
      return outcome;
    };
    const outcome = write();
    const settle = async () => {
      const written = await outcome;
      // Journals are trimmed in order: a trim takes away everything before it.
      await before?.settled;
      const due = batch.prefixes.filter(({ partition }) => !unsettled.has(partition));
      const settled = await settlePrefixes(runner, keys, { hotTtlMs, budget }, due, written);
      for (const [partition, error] of settled.failures) {
        unsettled.add(partition);
        counts.failures++;
        onError(error);
      }
      unsettled.settled(settled.lengths.keys());
      for (const [partition, length] of settled.lengths) lengths.set(partition, length);
      for (const { partition, entries } of due)
        if (settled.lengths.has(partition)) counts.entries += entries.length;
      counts.batches++;
      counts.rows += written.changes.length;
      caughtUp(batch.ends, batch.at);
      await step('settled');
    };
    const settled = settle();
    settled.catch(() => {});
    const committed = outcome.then(() => {});
    committed.catch(() => {});
    return { partitions: new Set(batch.prefixes.map(({ partition }) => partition)), committed, settled };
  }

  async function settleAll(): Promise<void> {
    const waited = inFlight;
    inFlight = [];
    const ends = await Promise.allSettled(waited.map(({ settled }) => settled));
    cursors.clear();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  /** One turn: whether anything was found, and whether nothing is left or in flight. */
  async function turn(): Promise<{ readonly found: boolean; readonly idle: boolean }> {
    const batch = await read();
    if (batch.failure) onError(batch.failure);
    const prepared = prepareBatch(batch.prefixes);
    while (inFlight.length >= in_flight_max) await inFlight.shift()?.settled;
    if (batch.prefixes.length > 0) inFlight.push(begin(batch, prepared));
    const found = batch.prefixes.length > 0;
    if (batch.full) return { found, idle: false };
    await settleAll();
    if (found) return { found, idle: false };
    caughtUp(batch.ends, batch.at);
    for (const partition of batch.ends) lengths.set(partition, 0);
    return { found, idle: batch.failure === null && unsettled.isEmpty() };
  }

  async function giveUp(error: Error): Promise<void> {
    counts.failures++;
    onError(error);
    await Promise.allSettled(inFlight.map(({ settled }) => settled));
    inFlight = [];
    cursors.clear();
  }

  async function waitForEntry(): Promise<void> {
    waiting = !connection.clustered;
    const msMax = connection.clustered ? limits.flush_idle_cluster_ms_max : limits.flush_idle_ms_max;
    const partitions = leases.held();
    // What was taken over meanwhile may have entries.
    const isSame = () => leases.held().join() === partitions.join();
    for (let empty = true; empty && stopping === 'no' && isSame(); ) {
      empty = await idleWait.forEntry(partitions, msMax);
      if (empty) caughtUp(partitions, performance.now());
    }
    waiting = false;
  }

  async function loop(): Promise<void> {
    await leases.start();
    let failed = 0;
    while (stopping !== 'now') {
      const start = performance.now();
      try {
        const { found, idle } = await turn();
        failed = 0;
        if (stopping === 'drain' && idle) break;
        if (idle && stopping === 'no') await waitForEntry();
        const intervals = found && stopping === 'no' ? rests_after_batch : 1;
        if (inFlight.length === 0) await rest(intervals * intervalMs - (performance.now() - start));
      } catch (error) {
        await giveUp(error as Error);
        const { journal_retry_ms_min: min, journal_retry_ms_max: max } = limits;
        const backoff = Math.min(max, min * 2 ** Math.min(failed++, 10));
        await rest(backoff * (0.5 + Math.random() / 2));
      }
    }
    await settleAll().catch(onError);
  }

  return {
    start() {
      done = loop();
      upkeep.start();
    },
    async stop({ drain = false, msMax = limits.shutdown_ms_max } = {}) {
      upkeep.stop();
      clearInterval(rewriteTimer);
      stopping = drain ? 'drain' : 'now';
      idleWait.close();
      if (!drain) waking.abort();
      const bound = new AbortController();
      const finished = done.then(() => leases.leave()).catch(onError);
      await Promise.race([finished, sleep(msMax, null, { signal: bound.signal }).catch(() => {})]);
      bound.abort();
      stopping = 'now';
      waking.abort();
    },
    stats() {
      const now = performance.now();
      const lagMs = waiting ? 0 : Math.max(0, ...[...caughtUpAt.values()].map((at) => now - at));
      return {
        ...counts,
        ...upkeep.stats(),
        lagMs,
        partitions: leases.held().length,
        lengths: new Map(lengths),
      };
    },
  };
}

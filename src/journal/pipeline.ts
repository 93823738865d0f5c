/**
 * The write-behind loop of one shard: read the starts of its journals, write one batch, commit, and only then settle.
 * While one batch is written, the previous one is settled and the next one is read, so that Postgres never waits for
 * Redis. Batches are written one at a time, so that commits, watermarks and trims follow the order of the journal. A
 * partition that cannot be settled is set aside and read again from its start. After any other failure all batches in
 * flight are given up and read again from the start: a batch may be written any number of times.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.js';
import type { Shard } from '../postgres/shards.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import type { Change } from './batch.js';
import type { createHotBudget } from './hot_budget.js';
import { createIdleWait } from './idle.js';
import { settlePrefixes } from './settle.js';
import { type ReadResult, readPrefixes } from './source.js';
import { createUnsettled } from './unsettled.js';
import { type OnQuarantine, type PreparedBatch, prepareBatch, writeBatch } from './write.js';

/** Step of a batch: read but not written, committed but still in the journal, or settled. */
export type FlushStep = 'read' | 'committed' | 'settled';

export interface PipelineOptions {
  readonly shard: Pick<Shard, 'pool' | 'history'>;
  /** Partitions of the shard that this flusher holds a lease on and that are not paused. */
  readonly held: () => readonly number[];
  readonly connection: RedisServers;
  readonly runner: ScriptRunner;
  readonly keys: Keys;
  readonly hotTtlMs: number;
  /** The byte budget that all shards of a flusher share. */
  readonly budget: ReturnType<typeof createHotBudget>;
  readonly intervalMs: number;
  readonly onError: (error: Error) => void;
  readonly onQuarantine: OnQuarantine;
  readonly onWritten?: ((changes: readonly Change[]) => void) | undefined;
  readonly onStep?: ((step: FlushStep) => Promise<void> | void) | undefined;
}

export interface PipelineStats {
  readonly entries: number;
  readonly batches: number;
  readonly rows: number;
  readonly failures: number;
  /** Every entry of the shard that is older than this is in Postgres. */
  readonly lagMs: number;
  /** Entries left in each journal when it was last settled. */
  readonly lengths: ReadonlyMap<number, number>;
}

export interface Pipeline {
  /** Runs the loop until `stop`. */
  run(): Promise<void>;
  /** Ends the loop after the batch in flight, or, for `drain`, once the journals are empty. `now` also ends a drain. */
  stop(how: 'drain' | 'now'): void;
  stats(): PipelineStats;
}

interface ReadAt extends ReadResult {
  /** Time of the reading, by the monotonic clock, in ms. */
  readonly at: number;
}

interface InFlight {
  readonly partitions: ReadonlySet<number>;
  readonly committed: Promise<void>;
  readonly settled: Promise<void>;
}

/**
 * Number of intervals a flusher waits after a batch that was not full. At a steady rate more rows then share the
 * fixed cost of a batch, which is most of its cost: one script per partition, one transaction, and one disk flush of
 * each server.
 */
const rests_after_batch = 4;
/** Batches in flight: one is settled, one is written, and one is ready. */
const in_flight_max = 3;

/** Creates the loop; it is idle until `run`. */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { shard, held: partitionsHeld, connection, runner, keys, hotTtlMs, intervalMs, onError } = options;
  const step = async (name: FlushStep) => options.onStep?.(name);
  const counts = { entries: 0, batches: 0, rows: 0, failures: 0 };
  /** When each held partition was last read to its end. */
  const caughtUpAt = new Map<number, number>();
  const lengths = new Map<number, number>();
  const unsettled = createUnsettled();
  /** Version of the last entry in flight, by partition. */
  const cursors = new Map<number, number>();
  let inFlight: InFlight[] = [];
  let stopping: 'no' | 'drain' | 'now' = 'no';
  const waking = new AbortController();
  const idleWait = createIdleWait(connection, keys);
  /** True while every journal is empty; Redis reports the next entry. */
  let waiting = false;

  async function rest(ms: number): Promise<void> {
    if (stopping !== 'now' && ms > 0) await sleep(ms, null, { signal: waking.signal }).catch(() => {});
  }

  const isInFlight = (partition: number) => inFlight.some(({ partitions }) => partitions.has(partition));

  async function read(): Promise<ReadAt> {
    const at = performance.now();
    const held = partitionsHeld();
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
      const outcome = await writeBatch(shard.pool, prepared, options.onQuarantine, shard.history);
      await step('committed');
      options.onWritten?.(outcome.changes);
      return outcome;
    };
    const outcome = write();
    const settle = async () => {
      const written = await outcome;
      // Journals are trimmed in order, because a trim removes everything before it.
      await before?.settled;
      const due = batch.prefixes.filter(({ partition }) => !unsettled.has(partition));
      const settled = await settlePrefixes(runner, keys, { hotTtlMs, budget: options.budget }, due, written);
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

  /** One turn of the loop. Returns whether it found entries, and whether none are left or in flight. */
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
    const partitions = partitionsHeld();
    // Partitions that were taken over meanwhile may have entries.
    const isSame = () => partitionsHeld().join() === partitions.join();
    for (let empty = true; empty && stopping === 'no' && isSame(); ) {
      empty = await idleWait.forEntry(partitions, msMax);
      if (empty) caughtUp(partitions, performance.now());
    }
    waiting = false;
  }

  async function loop(): Promise<void> {
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
    run: loop,
    stop(how) {
      stopping = how;
      idleWait.close();
      if (how === 'now') waking.abort();
    },
    stats() {
      const now = performance.now();
      const held = new Set(partitionsHeld());
      const waited = [...caughtUpAt].flatMap(([partition, at]) => (held.has(partition) ? [now - at] : []));
      return { ...counts, lagMs: waiting ? 0 : Math.max(0, ...waited), lengths: new Map(lengths) };
    },
  };
}

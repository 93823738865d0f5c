/**
 * Runs the write-behind loop of one shard. The loop reads the starts of the shard's journals, writes one batch,
 * commits, and only then settles the batch. While a batch is being written, the previous batch is settled and the next
 * batch is read. Batches are written one at a time, so that commits, watermarks and trims follow the order of the
 * journal. A partition that cannot be settled is set aside and read again from its start. After any other failure, all
 * batches in flight are dropped and read again, which is safe because a batch may be written any number of times. The
 * same happens if the incarnation of a partition was raised after its journal was read.
 */
import { drawMarkRow, type RaisedMark } from '../postgres/marks.js';
import { isOlderFlush } from '../postgres/pool.js';
import type { Shard } from '../postgres/shards.js';
import type { Random } from '../random.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import type { Time } from '../time.js';
import type { Asked } from './asked.js';
import type { Change } from './batch.js';
import type { HotBudget } from './hot_budget.js';
import { createIdleWait } from './idle.js';
import { journalLimits as limits } from './limits.js';
import { type Committed, settleBatches } from './settle.js';
import { type ReadResult, readPrefixes } from './source.js';
import { createUnsettled, retryMs } from './unsettled.js';
import {
  type OnQuarantine,
  type PreparedBatch,
  prepareBatch,
  readIncarnations,
  type WrittenBatch,
  writeBatch,
} from './write.js';

export type FlushStep = 'read' | 'committed' | 'settled';

export interface PipelineOptions {
  readonly shard: Pick<Shard, 'pool' | 'history'>;
  readonly held: () => readonly number[];
  readonly connection: RedisServers;
  readonly runner: ScriptRunner;
  readonly keys: Keys;
  readonly hotTtlMs: number;
  readonly budget: HotBudget;
  readonly asked: Asked;
  readonly intervalMs: number;
  readonly time: Time;
  readonly random: Random;
  readonly onError: (error: Error) => void;
  readonly onQuarantine: OnQuarantine;
  readonly onWritten?: ((changes: readonly Change[]) => void) | undefined;
  readonly onStep?: ((step: FlushStep) => Promise<void> | void) | undefined;
}

export interface PipelineStats {
  /** The number of journal entries that were written to Postgres and removed from the journal. */
  readonly entries: number;
  readonly batches: number;
  /** Counts the rows sent to Postgres. A batch sends only the newest version of each entity. */
  readonly rows: number;
  /** How many times the loop dropped the batches in flight or could not settle a partition. */
  readonly failures: number;
  /**
   * How far Postgres is behind the journals, in ms. Postgres has all entries of the shard that are older than this lag.
   */
  readonly lagMs: number;
  /** The number of entries left in each journal when it was last settled. */
  readonly lengths: ReadonlyMap<number, number>;
}

interface ReadAt extends ReadResult {
  /** The time by the monotonic clock, in ms. */
  readonly at: number;
}

interface InFlight {
  readonly partitions: ReadonlySet<number>;
  readonly committed: Promise<void>;
  /** Resolves when the callers that wait for this batch have been notified. */
  readonly announced: Promise<void>;
  /** Resolves when the batch is settled, or when the loop may settle it together with later batches. */
  readonly settled: Promise<void>;
}

/** A committed and announced batch that is not settled yet. */
interface Kept extends Committed {
  readonly batch: ReadAt;
  readonly written: WrittenBatch;
  /** When the batch was committed, by the monotonic clock, in ms. */
  readonly at: number;
}

/**
 * How many intervals a flusher waits after a batch that was not full. More rows then share the fixed cost of the next
 * batch: one script per partition, one transaction, and one disk flush on each server.
 */
const rests_after_batch = 4;
/**
 * The number of batches in flight. One batch is being settled, one batch is being written, and one batch is ready to be
 * written.
 */
const in_flight_max = 3;

const serversOf = (batches: readonly WrittenBatch[]): string[] => [
  ...new Set(batches.flatMap(({ raised }) => raised.map(({ server }) => server))),
];

/** Returns the newest mark for each pair of row and server. The given marks must be in the order of their commits. */
const newestMarks = (batches: readonly WrittenBatch[]): RaisedMark[] => [
  ...new Map(
    batches.flatMap(({ raised }) => raised.map((mark) => [`${mark.shard} ${mark.server}`, mark])),
  ).values(),
];

/**
 * A loop that is idle until `run`. Each turn reads a batch and puts it in flight. A round reads all leased journals.
 * After a round that was not full, or after a stop, the loop waits until no batch is in flight. If the journals are
 * empty, the loop waits for the next entry. In the pause before the next round, turns read only journals for which a
 * flush is requested. After such a turn, the loop waits for the commit, but not until the batch is settled. The batches
 * of several such turns are settled together, because settling costs a script per partition.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #time: Time;
  readonly #counts = { entries: 0, batches: 0, rows: 0, failures: 0 };
  /** The time at which each leased partition was last read to the end of its journal. */
  readonly #caughtUpAt = new Map<number, number>();
  readonly #lengths = new Map<number, number>();
  readonly #unsettled: ReturnType<typeof createUnsettled>;
  /** The version of the last entry in flight, by partition. */
  readonly #cursors = new Map<number, number>();
  /** The registered incarnations, read before the journals in flight were read. */
  readonly #incarnations = new Map<number, number>();
  #inFlight: InFlight[] = [];
  /** Whether any of the batches in `#inFlight` has failed. */
  #failed = false;
  /** The announced batches that are not settled yet, in order. Bounded by `#isSettlingDue`. */
  #kept: Kept[] = [];
  #keptEntries = 0;
  #keptBytes = 0;
  /** The row of the marks that batches raise. Batches that are settled together share a mark. */
  #markRow: number | undefined;
  /** A stop was requested. `now` ends the loop after the current batch. A `drain` may later be replaced by `now`. */
  #stopping: 'no' | 'drain' | 'now' = 'no';
  readonly #waking = new AbortController();
  readonly #idleWait: ReturnType<typeof createIdleWait>;
  /** Whether every journal is empty. If so, the loop waits until Redis reports the next entry. */
  #waiting = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#time = options.time;
    this.#unsettled = createUnsettled(options.time, options.random);
    this.#drawMarkRow();
    const { asked, connection, held, keys } = options;
    this.#idleWait = createIdleWait(connection, keys, this.#time, (ms, signal) =>
      asked.sleep(ms, held, signal),
    );
  }

  async run(): Promise<void> {
    const { asked, held, intervalMs } = this.#options;
    let failed = 0;
    let nextRoundAt = Number.NEGATIVE_INFINITY;
    while (this.#stopping !== 'now') {
      const start = this.#time.monotonic();
      try {
        const due = asked.take(held());
        if (start < nextRoundAt && this.#stopping === 'no') await this.#turnFor(due);
        else {
          const { found, idle } = await this.#round();
          if (this.#stopping === 'drain' && idle) break;
          if (idle && this.#stopping === 'no') await this.#waitForEntry();
          const intervals = found && this.#stopping === 'no' ? rests_after_batch : 1;
          nextRoundAt = this.#inFlight.length === 0 ? start + intervals * intervalMs : start;
        }
        failed = 0;
        await this.#restUntilAsked(Math.min(nextRoundAt, this.#settlingAt()) - this.#time.monotonic());
      } catch (error) {
        if (!isOlderFlush(error)) {
          this.#counts.failures++;
          this.#options.onError(error as Error);
        }
        await this.#settleAll().catch(() => {});
        this.#incarnations.clear();
        nextRoundAt = Number.NEGATIVE_INFINITY;
        await this.#rest(retryMs(failed++, this.#options.random.number()));
      }
    }
    await this.#settleAll().catch(this.#options.onError);
  }

  /**
   * `now` ends the loop after the current batch. `drain` ends it when the journals are empty. `now` also ends a drain.
   */
  stop(how: 'drain' | 'now'): void {
    this.#stopping = how;
    this.#idleWait.close();
    if (how === 'now') this.#waking.abort();
  }

  stats(): PipelineStats {
    const now = this.#time.monotonic();
    const held = new Set(this.#options.held());
    const waited = [...this.#caughtUpAt].flatMap(([partition, at]) =>
      held.has(partition) ? [now - at] : [],
    );
    const lagMs = this.#waiting ? 0 : Math.max(0, ...waited);
    return { ...this.#counts, lagMs, lengths: new Map(this.#lengths) };
  }

  async #rest(ms: number): Promise<void> {
    if (this.#stopping !== 'now' && ms > 0) await this.#time.sleep(ms, { signal: this.#waking.signal });
  }

  /** Pauses before the next round. A request for a flush ends the pause. */
  async #restUntilAsked(ms: number): Promise<void> {
    const { asked, held } = this.#options;
    if (this.#stopping !== 'now') await asked.sleep(ms, held, this.#waking.signal);
  }

  /** Reads a batch and puts it in flight. With `isTurn`, the batch may be settled later. */
  async #take(partitions: readonly number[], isTurn = false): Promise<ReadAt> {
    const batch = await this.#read(partitions);
    if (batch.failure) this.#options.onError(batch.failure);
    if (batch.prefixes.length === 0) return batch;
    const prepared = prepareBatch(batch.prefixes, this.#incarnations);
    while (this.#inFlight.length >= in_flight_max) await this.#inFlight.shift()?.settled;
    this.#inFlight.push(this.#begin(batch, prepared, isTurn));
    return batch;
  }

  /**
   * Reads a batch from all leased journals. Returns whether it found entries, and whether no entries are left or in
   * flight.
   */
  async #round(): Promise<{ readonly found: boolean; readonly idle: boolean }> {
    const { asked, held } = this.#options;
    const batch = await this.#take(held());
    const found = batch.prefixes.length > 0;
    if (batch.full) return { found, idle: false };
    await this.#settleAll();
    if (found) return { found, idle: false };
    await asked.announce([], batch.ends);
    this.#caughtUp(batch.ends, batch.at);
    for (const partition of batch.ends) this.#lengths.set(partition, 0);
    return { found, idle: batch.failure === null && this.#unsettled.isEmpty() };
  }

  /**
   * Reads a batch from these journals and waits for its commit. If no journals are given, settles the batches that are
   * due.
   */
  async #turnFor(partitions: readonly number[]): Promise<void> {
    if (this.#failed) return this.#settleAll();
    if (partitions.length === 0) {
      await this.#inFlight.at(-1)?.settled;
      if (this.#isSettlingDue()) await this.#settleKept();
      return;
    }
    const batch = await this.#take(partitions, true);
    await this.#inFlight.at(-1)?.committed;
    if (batch.prefixes.length === 0) await this.#options.asked.announce([], batch.ends);
  }

  async #read(partitions: readonly number[]): Promise<ReadAt> {
    const at = this.#time.monotonic();
    const { connection, keys } = this.#options;
    const held = new Set(this.#options.held());
    for (const known of [this.#caughtUpAt, this.#lengths, this.#incarnations])
      for (const partition of known.keys()) if (!held.has(partition)) known.delete(partition);
    for (const partition of held) if (!this.#caughtUpAt.has(partition)) this.#caughtUpAt.set(partition, at);
    const isInFlight = (partition: number) =>
      this.#inFlight.some(({ partitions }) => partitions.has(partition)) ||
      this.#kept.some(({ prefixes }) => prefixes.some((prefix) => prefix.partition === partition));
    for (const partition of this.#unsettled.takeBack(isInFlight)) this.#cursors.delete(partition);
    const readable = partitions.filter((partition) => held.has(partition) && !this.#unsettled.has(partition));
    const unknown = readable.filter((partition) => !this.#incarnations.has(partition));
    if (unknown.length > 0)
      for (const [partition, incarnation] of await readIncarnations(this.#options.shard.pool, unknown))
        this.#incarnations.set(partition, incarnation);
    return { at, ...(await readPrefixes(connection, keys, readable, this.#cursors)) };
  }

  #caughtUp(partitions: readonly number[], at: number): void {
    for (const partition of partitions)
      if (!this.#unsettled.has(partition)) this.#caughtUpAt.set(partition, at);
  }

  #begin(batch: ReadAt, prepared: PreparedBatch, isTurn: boolean): InFlight {
    const before = this.#inFlight.at(-1);
    for (const { partition, last } of batch.prefixes) this.#cursors.set(partition, last);
    const written = this.#write(batch, prepared, before);
    const announced = this.#announce(batch, written, before);
    const settled = this.#settle(announced, before, isTurn);
    const committed = written.then(() => {});
    for (const end of [committed, announced, settled])
      end.catch(() => {
        this.#failed = true;
      });
    const partitions = new Set(batch.prefixes.map(({ partition }) => partition));
    return { partitions, committed, announced, settled };
  }

  async #write(batch: ReadAt, prepared: PreparedBatch, before: InFlight | undefined): Promise<WrittenBatch> {
    const { asked, shard, onQuarantine, onStep } = this.#options;
    await before?.committed;
    await onStep?.('read');
    const written = await writeBatch(shard.pool, prepared, onQuarantine, this.#markRow);
    asked.committed(batch.prefixes, batch.ends);
    return written;
  }

  /**
   * Announces the commit. Rejects if another server has replaced the server that committed, because the commit is then
   * lost. Later batches are then not announced either, because the announcement of their versions would also confirm
   * this batch. For the same reason, the servers of the kept batches are checked again.
   */
  async #announce(
    batch: ReadAt,
    writing: Promise<WrittenBatch>,
    before: InFlight | undefined,
  ): Promise<void> {
    const { asked, shard, onWritten, onStep } = this.#options;
    const { prefixes, ends } = batch;
    const written = await writing;
    await before?.announced;
    const { history } = shard;
    const servers = serversOf([...this.#kept.map((kept) => kept.written), written]);
    await asked.announce(prefixes, ends, history && ((hint) => history.announce(servers, hint)));
    await onStep?.('committed');
    this.#kept.push({ batch, prefixes, written, at: this.#time.monotonic() });
    this.#countKept(batch, 1);
    onWritten?.(written.changes);
  }

  async #settle(announced: Promise<void>, before: InFlight | undefined, isTurn: boolean): Promise<void> {
    await announced;
    // Trims journals in order, because a trim removes all earlier entries.
    await before?.settled;
    if (!isTurn || this.#isSettlingDue()) await this.#settleKept();
  }

  #countKept({ prefixes, bytes }: ReadAt, sign: 1 | -1): void {
    for (const { entries } of prefixes) this.#keptEntries += sign * entries.length;
    this.#keptBytes += sign * bytes;
  }

  #dropKept(): void {
    this.#kept = [];
    this.#keptEntries = 0;
    this.#keptBytes = 0;
  }

  /** When the kept batches must be settled, by the monotonic clock. */
  #settlingAt(): number {
    return (this.#kept[0]?.at ?? Number.POSITIVE_INFINITY) + limits.settle_wait_ms_max;
  }

  #isSettlingDue(): boolean {
    const { journal_batch_entries_max: entriesMax, journal_batch_bytes_max: bytesMax } = limits;
    const isFull = this.#keptEntries >= entriesMax || this.#keptBytes >= bytesMax;
    return isFull || this.#settlingAt() <= this.#time.monotonic();
  }

  #drawMarkRow(): void {
    const { history } = this.#options.shard;
    if (history) this.#markRow = drawMarkRow(history.random);
  }

  /**
   * Settles all kept batches with one script per partition. No other batch may be settled at the same time. Before
   * entries leave the journal, Redis records the marks of their commits. Rejects if another server has replaced a
   * server that committed, because that commit is then lost.
   */
  async #settleKept(): Promise<void> {
    const kept = [...this.#kept];
    if (kept.length === 0) return;
    const { shard, runner, keys, onError } = this.#options;
    const marks = newestMarks(kept.map(({ written }) => written));
    this.#drawMarkRow();
    await shard.history?.note(marks);
    const isDue = (partition: number) => !this.#unsettled.has(partition);
    const { failures, lengths } = await settleBatches(runner, keys, this.#options, kept, isDue);
    this.#kept.splice(0, kept.length);
    for (const [partition, error] of failures) {
      this.#unsettled.add(partition);
      this.#counts.failures++;
      onError(error);
    }
    this.#unsettled.settled(lengths.keys());
    for (const [partition, length] of lengths) this.#lengths.set(partition, length);
    for (const { batch, written } of kept) {
      this.#countKept(batch, -1);
      for (const { partition, entries } of batch.prefixes)
        if (lengths.has(partition)) this.#counts.entries += entries.length;
      this.#counts.batches++;
      this.#counts.rows += written.changes.length;
      this.#caughtUp(batch.ends, batch.at);
    }
    await this.#options.onStep?.('settled');
  }

  /**
   * Waits until no batch is in flight, and settles the committed batches. Throws the error of the first batch that
   * failed. All batches that are not settled are then read again.
   */
  async #settleAll(): Promise<void> {
    const waited = this.#inFlight;
    this.#inFlight = [];
    const ends = await Promise.allSettled(waited.map(({ settled }) => settled));
    this.#failed = false;
    this.#cursors.clear();
    await this.#settleKept().finally(() => this.#dropKept());
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #waitForEntry(): Promise<void> {
    const { connection, held } = this.#options;
    this.#waiting = !connection.clustered;
    const msMax = connection.clustered ? limits.flush_idle_cluster_ms_max : limits.flush_idle_ms_max;
    const partitions = held();
    // Checks again, because partitions that were taken over in the meantime may have entries.
    const isSame = () => held().join() === partitions.join();
    for (let empty = true; empty && this.#stopping === 'no' && isSame(); ) {
      empty = await this.#idleWait.forEntry(partitions, msMax);
      if (empty) this.#caughtUp(partitions, this.#time.monotonic());
    }
    this.#waiting = false;
  }
}

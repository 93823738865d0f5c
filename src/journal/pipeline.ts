/**
 * Runs the write-behind loop of one shard. The loop reads the beginnings of the shard's journals, writes one batch,
 * commits, and only then settles the batch. Settling removes the batch's entries from the journal.
 *
 * While a batch is being written, the previous batch is settled and the next batch is read. Only one batch is written
 * at a time, so that commits, watermarks and trims follow the order of the journal.
 *
 * A partition that cannot be settled is set aside and read again from its start. After any other failure, all batches
 * in flight are dropped and read again. This is safe, because a batch may be written any number of times. The same
 * happens if a partition's incarnation was raised after its journal was read.
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
  /** The number of rows sent to Postgres. A batch sends only the newest version of each entity. */
  readonly rows: number;
  /** How many times the loop dropped the batches in flight or could not settle a partition. */
  readonly failures: number;
  /** The age in ms of the oldest change that may be missing in Postgres. */
  readonly lagMs: number;
  /** The number of entries that each journal had left when it was last settled. */
  readonly lengths: ReadonlyMap<number, number>;
}

interface ReadAt extends ReadResult {
  /** The monotonic time in ms at which the batch was read. */
  readonly at: number;
}

interface InFlight {
  readonly partitions: ReadonlySet<number>;
  readonly committed: Promise<void>;
  /** Resolves when the callers that wait for this batch have been told about the commit. */
  readonly announced: Promise<void>;
  /**
   * Resolves when the batch is settled. If the batch is to be settled later, together with others, resolves without
   * waiting for this.
   */
  readonly settled: Promise<void>;
}

/** A committed and announced batch whose entries are still in the journal. */
interface Kept extends Committed {
  readonly batch: ReadAt;
  readonly written: WrittenBatch;
  /** The monotonic time in ms at which the batch was committed. */
  readonly at: number;
}

/**
 * How many intervals a flusher waits after a batch that was not full. The longer pause lets more rows share the fixed
 * cost of the next batch: one script per partition, one transaction, and one disk flush on each server.
 */
const rests_after_batch = 4;
/**
 * The maximum number of batches in flight: one that is being settled, one that is being written, and one that is ready
 * to be written.
 */
const in_flight_max = 3;

const serversOf = (batches: readonly WrittenBatch[]): string[] => [
  ...new Set(batches.flatMap(({ raised }) => raised.map(({ server }) => server))),
];

/**
 * Returns the newest mark for each pair of row and server (`history.ts` explains marks). The marks of the batches must
 * be in the order of their commits.
 */
const newestMarks = (batches: readonly WrittenBatch[]): RaisedMark[] => [
  ...new Map(
    batches.flatMap(({ raised }) => raised.map((mark) => [`${mark.shard} ${mark.server}`, mark])),
  ).values(),
];

/**
 * The loop, which starts with `run`. It makes rounds and, between them, turns. Both read a batch and put it in flight.
 * - A round reads all leased journals. If its batch is not full, or if a stop was requested, the loop then waits until
 *   no batch is in flight. If all journals are empty, the loop waits for the next entry.
 * - A turn reads only journals for which a flush is requested, during the pause before the next round. The loop then
 *   waits for the commit, but the batch may stay unsettled for a moment. The batches of several turns are settled
 *   together, because settling costs a script per partition.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #time: Time;
  readonly #counts = { entries: 0, batches: 0, rows: 0, failures: 0 };
  /** The monotonic time in ms at which each leased partition was last read to the end of its journal. */
  readonly #caughtUpAt = new Map<number, number>();
  readonly #lengths = new Map<number, number>();
  readonly #unsettled: ReturnType<typeof createUnsettled>;
  /** The version of the last entry in flight, keyed by partition. */
  readonly #cursors = new Map<number, number>();
  /** The incarnation of each leased partition, as registered in Postgres before the entries in flight were read. */
  readonly #incarnations = new Map<number, number>();
  #inFlight: InFlight[] = [];
  /** Whether any of the batches in `#inFlight` has failed. */
  #failed = false;
  /**
   * The batches that are committed and announced but not settled yet, in order. `#isSettlingDue` limits their number.
   */
  #kept: Kept[] = [];
  #keptEntries = 0;
  #keptBytes = 0;
  /**
   * The row in Postgres whose counter (the mark) the next transactions increase. Batches that leave the journal
   * together use the same row, so that Redis need store only one mark for them.
   */
  #markRow: number | undefined;
  /**
   * Whether a stop was requested. `now` ends the loop after the current batch. `drain` ends it when the journals are
   * empty.
   */
  #stopping: 'no' | 'drain' | 'now' = 'no';
  readonly #waking = new AbortController();
  readonly #idleWait: ReturnType<typeof createIdleWait>;
  /** Whether the loop waits until Redis reports the next entry, because all journals are empty. */
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
   * `now` ends the loop after the current batch. `drain` ends it when the journals are empty. Calling `stop('now')`
   * also ends a drain.
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

  /** Pauses before the next batch. A request for a flush ends the pause. */
  async #restUntilAsked(ms: number): Promise<void> {
    const { asked, held } = this.#options;
    if (this.#stopping !== 'now') await asked.sleep(ms, held, this.#waking.signal);
  }

  /**
   * Reads a batch and puts it in flight. `isTurn` is true for a batch that callers requested. Such a batch may be
   * settled later, together with other batches.
   */
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
   * Reads a batch from all leased journals. `found` says whether the batch has entries. `idle` says that all journals
   * are empty and that no batch is in flight.
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
   * Writes a batch for callers that requested a flush of these partitions, and waits for its commit. If no partitions
   * are given, settles the batches in `#kept` if they are due.
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
   * Announces a batch's commit. Rejects if the server that committed was replaced by another one, because the commit is
   * then lost. An announced version also confirms all earlier versions. Each announcement therefore also checks the
   * servers of the earlier batches that are not settled yet.
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
    // Trims journals in order, because a trim removes all earlier entries too.
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

  /** The monotonic time in ms at which the batches in `#kept` must be settled. */
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
   * Settles the batches in `#kept` with one script per partition. Must not run twice at the same time. Stores the marks
   * of the commits in Redis before entries leave the journal. Rejects if a server that committed was replaced by
   * another one, because that commit is then lost.
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
   * failed. The next read then begins with the entries that are still in the journals.
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
    // Stops waiting when this flusher takes over other partitions, because their journals may have entries.
    const isSame = () => held().join() === partitions.join();
    for (let empty = true; empty && this.#stopping === 'no' && isSame(); ) {
      empty = await this.#idleWait.forEntry(partitions, msMax);
      if (empty) this.#caughtUp(partitions, this.#time.monotonic());
    }
    this.#waiting = false;
  }
}

/**
 * Tracks which partitions have callers that wait for a flush, and tells these callers about commits (decision 0055).
 * A caller requests a flush with a hint. The flusher then reads the journals of these partitions at once, and no others.
 */
import type { Hints } from '../redis/hints.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { partitionsAsked, tellFlushed } from '../store/core/flush_hints.js';
import type { Keys } from '../store/core/keys.js';
import type { Time } from '../time.js';
import type { JournalPrefix } from './batch.js';
import { journalLimits as limits } from './limits.js';

export interface Asked {
  start(): void;
  /** Waits for `ms`, or until a flush of a partition in `held` is requested. */
  sleep(ms: number, held: () => readonly number[], signal: AbortSignal): Promise<void>;
  /** Returns those of the partitions of which a flush is requested. Their journals count as read from now on. */
  take(held: readonly number[]): readonly number[];
  /**
   * Records that these prefixes are in Postgres, and that the journals of `ends` were read to their end. Announces both
   * if a flush was requested. A journal that was not read to its end is due again. Each journal is also due once more
   * after the first batch that follows a request, because callers add entries while this batch is committed.
   */
  committed(prefixes: readonly JournalPrefix[], ends: readonly number[]): void;
  close(): void;
}

interface AskedOptions {
  /** Without hints, no flush can be requested. */
  readonly hints: Pick<Hints, 'listen'> | undefined;
  readonly runner: ScriptRunner;
  readonly keys: Keys;
  readonly time: Time;
  /** The partitions of this flusher. */
  readonly held: () => readonly number[];
}

interface Request {
  /** By the monotonic clock, in ms. */
  readonly at: number;
  /** Whether the journal must be read. */
  due: boolean;
  /** Whether the journal is read once more after the next batch. */
  again: boolean;
}

export function createAsked({ hints, runner, keys, time, held }: AskedOptions): Asked {
  /** The last request for a flush of each partition. Bounded by the number of partitions. */
  const requests = new Map<number, Request>();
  /** The version up to which this flusher has written each journal. */
  const marks = new Map<number, number>();
  const sleeping = new Set<() => void>();
  let stop = () => {};

  const isDue = (partition: number): boolean => requests.get(partition)?.due === true;

  function note(hint: Buffer): void {
    const own = new Set(held());
    const at = time.monotonic();
    for (const partition of partitionsAsked(hint))
      if (own.has(partition)) requests.set(partition, { at, due: true, again: true });
    for (const wake of [...sleeping]) wake();
  }

  return {
    start() {
      void hints?.listen(keys.flushAsked(), note).then((release) => {
        stop = release;
      });
    },
    async sleep(ms, of, signal) {
      if (ms <= 0 || of().some(isDue)) return;
      const waking = new AbortController();
      const end = () => waking.abort();
      const wake = () => of().some(isDue) && end();
      sleeping.add(wake);
      // Does not use AbortSignal.any, because Node.js 20 then keeps an entry at `signal` for each sleep of the process.
      signal.addEventListener('abort', end);
      if (!signal.aborted) await time.sleep(ms, { signal: waking.signal });
      signal.removeEventListener('abort', end);
      sleeping.delete(wake);
    },
    take(of) {
      const due = of.filter(isDue);
      for (const partition of due) (requests.get(partition) as Request).due = false;
      return due;
    },
    committed(prefixes, ends) {
      for (const { partition, last } of prefixes) marks.set(partition, last);
      if (requests.size === 0) return;
      const since = time.monotonic() - limits.flush_asked_age_ms_max;
      for (const [partition, { at }] of requests) if (at < since) requests.delete(partition);
      const atEnd = new Set(ends);
      for (const { partition } of prefixes) {
        const request = requests.get(partition);
        if (request === undefined) continue;
        if (request.again || !atEnd.has(partition)) request.due = true;
        if (atEnd.has(partition)) request.again = false;
      }
      const told = new Set([...prefixes.map(({ partition }) => partition), ...ends]);
      const due = [...told].filter((partition) => requests.has(partition) && marks.has(partition));
      tellFlushed(
        runner,
        keys,
        due.map((partition) => [partition, marks.get(partition) as number]),
      );
    },
    close: () => stop(),
  };
}

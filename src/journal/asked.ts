/**
 * Tracks the partitions for which callers have requested a flush, and tells the callers when their changes are
 * committed (decision 0055). A caller requests a flush with a hint. The flusher then reads the journals of the
 * requested partitions immediately.
 */
import type { Hints } from '../redis/hints.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { flushedHint, partitionsAsked, tellFlushed } from '../store/core/flush_hints.js';
import type { Keys } from '../store/core/keys.js';
import type { Time } from '../time.js';
import type { JournalPrefix } from './batch.js';
import { journalLimits as limits } from './limits.js';

export interface Asked {
  start(): void;
  /** Waits for `ms`, or until a caller requests a flush of a partition in `held`. */
  sleep(ms: number, held: () => readonly number[], signal: AbortSignal): Promise<void>;
  /**
   * Returns the given partitions whose requested flush has not begun yet. Records that their journals are being read.
   */
  take(held: readonly number[]): readonly number[];
  /**
   * Records that `prefixes` are committed, and that the journals of the partitions `ends` were read to their end. A
   * journal with a requested flush is read again until its end is reached. It is also read once more after the first
   * batch that follows the request, because callers add entries while that batch is being committed.
   */
  committed(prefixes: readonly JournalPrefix[], ends: readonly number[]): void;
  /**
   * Tells the callers that requested a flush up to which version each journal is in Postgres. `prefixes` were just
   * committed. `ends` are the partitions whose journals contain no further entries. A journal without new commits is
   * announced only once per request. `send` sends the hint. If `send` rejects, this function rejects with the same
   * error and does not repeat the announcement.
   */
  announce(
    prefixes: readonly JournalPrefix[],
    ends: readonly number[],
    send?: (hint: string) => Promise<void>,
  ): Promise<void>;
  close(): void;
}

interface AskedOptions {
  /** If undefined, no caller can request a flush. */
  readonly hints: Pick<Hints, 'listen'> | undefined;
  readonly runner: ScriptRunner;
  readonly keys: Keys;
  readonly time: Time;
  /** Returns the partitions of this flusher. */
  readonly held: () => readonly number[];
}

interface Request {
  /** The time of the request by the monotonic clock, in ms. */
  readonly at: number;
  /** Whether the journal must be read. */
  due: boolean;
  /** Whether the journal must be read once more after the next batch. */
  again: boolean;
  /** Whether an announcement was sent since the request. */
  told: boolean;
}

export function createAsked({ hints, runner, keys, time, held }: AskedOptions): Asked {
  /** The last request for each partition. Bounded by the number of partitions. */
  const requests = new Map<number, Request>();
  /** The version up to which this flusher has written and announced each journal. */
  const marks = new Map<number, number>();
  const sleeping = new Set<() => void>();
  let stop = () => {};

  const isDue = (partition: number): boolean => requests.get(partition)?.due === true;

  function note(hint: Buffer): void {
    const own = new Set(held());
    const at = time.monotonic();
    for (const partition of partitionsAsked(hint))
      if (own.has(partition)) requests.set(partition, { at, due: true, again: true, told: false });
    for (const wake of [...sleeping]) wake();
  }

  return {
    start() {
      void hints?.listen(keys.flushAsked(), note).then((release) => {
        stop = release;
      });
    },
    async sleep(ms, of, signal) {
      if (ms <= 0 || signal.aborted || of().some(isDue)) return;
      // Does not use an AbortController, because aborting it costs more than waiting for the rest of the pause.
      await new Promise<void>((resolve) => {
        const end = () => {
          time.cancel(timer);
          signal.removeEventListener('abort', end);
          sleeping.delete(wake);
          resolve();
        };
        const wake = () => of().some(isDue) && end();
        const timer = time.after(ms, end);
        signal.addEventListener('abort', end);
        sleeping.add(wake);
      });
    },
    take(of) {
      const due = of.filter(isDue);
      for (const partition of due) (requests.get(partition) as Request).due = false;
      return due;
    },
    committed(prefixes, ends) {
      const since = time.monotonic() - limits.flush_asked_age_ms_max;
      for (const [partition, { at }] of requests) if (at < since) requests.delete(partition);
      const atEnd = new Set(ends);
      for (const { partition } of prefixes) {
        const request = requests.get(partition);
        if (request === undefined) continue;
        if (request.again || !atEnd.has(partition)) request.due = true;
        if (atEnd.has(partition)) request.again = false;
      }
    },
    async announce(prefixes, ends, send = async (hint) => tellFlushed(runner, keys, hint)) {
      const written = new Map(prefixes.map(({ partition, last }) => [partition, last]));
      const told = [...new Set([...written.keys(), ...ends])].flatMap((partition) => {
        const request = requests.get(partition);
        const mark = written.get(partition) ?? marks.get(partition);
        if (request === undefined || mark === undefined) return [];
        const isNews = written.has(partition) || !request.told;
        request.told = true;
        return isNews ? [[partition, mark] as const] : [];
      });
      if (told.length > 0) await send(flushedHint(told));
      for (const [partition, last] of written) marks.set(partition, last);
    },
    close: () => stop(),
  };
}

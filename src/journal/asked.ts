/**
 * Tracks which partitions have callers that wait for a flush, and tells these callers about commits (decision 0055).
 * A caller requests a flush with a hint. While a flush is requested, the flusher does not pause between batches.
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
  /**
   * Waits for `ms`, or until a flush of a partition in `held` is requested. If one is already requested, waits for at
   * most flush_asked_ms.
   */
  sleep(ms: number, held: () => readonly number[], signal: AbortSignal): Promise<void>;
  /**
   * Records that these prefixes are in Postgres, and that the journals of `ends` were read to their end at `at`, in ms
   * of the monotonic clock. Announces both if a flush was requested.
   */
  committed(prefixes: readonly JournalPrefix[], ends: readonly number[], at: number): void;
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

export function createAsked({ hints, runner, keys, time, held }: AskedOptions): Asked {
  /** When a flush of each partition was last requested. Bounded by the number of partitions. */
  const askedAt = new Map<number, number>();
  /** The version up to which this flusher has written each journal. */
  const marks = new Map<number, number>();
  const sleeping = new Set<() => void>();
  let stop = () => {};

  function note(hint: Buffer): void {
    const own = new Set(held());
    const at = time.monotonic();
    for (const partition of partitionsAsked(hint)) if (own.has(partition)) askedAt.set(partition, at);
    for (const wake of [...sleeping]) wake();
  }

  return {
    start() {
      void hints?.listen(keys.flushAsked(), note).then((release) => {
        stop = release;
      });
    },
    async sleep(ms, of, signal) {
      const since = () => time.monotonic() - limits.flush_asked_age_ms_max;
      const isAsked = () =>
        of().some((partition) => (askedAt.get(partition) ?? Number.NEGATIVE_INFINITY) > since());
      if (isAsked()) return time.sleep(Math.min(ms, limits.flush_asked_ms), { signal });
      const waking = new AbortController();
      const end = () => waking.abort();
      const wake = () => isAsked() && end();
      sleeping.add(wake);
      // Does not use AbortSignal.any, because Node.js 20 then keeps an entry at `signal` for each sleep of the process.
      signal.addEventListener('abort', end);
      if (!signal.aborted) await time.sleep(ms, { signal: waking.signal });
      signal.removeEventListener('abort', end);
      sleeping.delete(wake);
    },
    committed(prefixes, ends, at) {
      for (const { partition, last } of prefixes) marks.set(partition, last);
      if (askedAt.size === 0) return;
      const told = new Set([...prefixes.map(({ partition }) => partition), ...ends]);
      const due = [...told].filter((partition) => askedAt.has(partition) && marks.has(partition));
      tellFlushed(
        runner,
        keys,
        due.map((partition) => [partition, marks.get(partition) as number]),
      );
      // Keeps later requests, because their callers may wait for later entries.
      for (const partition of ends) if ((askedAt.get(partition) ?? at) < at) askedAt.delete(partition);
    },
    close: () => stop(),
  };
}

/**
 * Partitions whose journal could not be settled, for instance because their slot is migrating. Each is set aside
 * separately and read again from its start after a backoff; the others continue.
 *
 * While a partition is set aside, its later prefixes that are in flight are not settled either: settling one trims
 * everything before it, and the entities of the prefix that failed would stay in Redis without a deadline.
 */
import { limits } from '../limits.js';

export interface Unsettled {
  /** Sets a partition aside. */
  add(partition: number): void;
  has(partition: number): boolean;
  /** Forgets the failures of partitions that were settled. */
  settled(partitions: Iterable<number>): void;
  /**
   * Returns the partitions whose backoff is over and that have no prefix in flight, and no longer counts them as set
   * aside.
   */
  takeBack(isInFlight: (partition: number) => boolean): number[];
  /** Whether no partition is set aside. */
  isEmpty(): boolean;
}

export function createUnsettled(now = () => performance.now()): Unsettled {
  const retryAt = new Map<number, number>();
  const failures = new Map<number, number>();
  return {
    add(partition) {
      const failed = failures.get(partition) ?? 0;
      failures.set(partition, failed + 1);
      const backoff = Math.min(
        limits.journal_retry_ms_max,
        limits.journal_retry_ms_min * 2 ** Math.min(failed, 10),
      );
      retryAt.set(partition, now() + backoff * (0.5 + Math.random() / 2));
    },
    has: (partition) => retryAt.has(partition),
    settled(partitions) {
      if (failures.size > 0) for (const partition of partitions) failures.delete(partition);
    },
    takeBack(isInFlight) {
      const back = [...retryAt].filter(([partition, at]) => at <= now() && !isInFlight(partition));
      for (const [partition] of back) retryAt.delete(partition);
      return back.map(([partition]) => partition);
    },
    isEmpty: () => retryAt.size === 0,
  };
}

/**
 * Manages the partitions whose journal could not be settled, for instance because their slot is being migrated. Such a
 * partition is set aside. After a backoff, its journal is read again from the start. Until then, later entries of the
 * partition that are already in flight are not settled either. Otherwise the trim would also remove the entries that
 * could not be settled, and Redis would keep their entities without an expiry.
 */
import type { Random } from '../random.js';
import type { Time } from '../time.js';
import { journalLimits as limits } from './limits.js';

/** Returns the backoff after `failed` failures, in ms. `random` is in [0, 1). */
export function retryMs(failed: number, random: number): number {
  const { journal_retry_ms_min: min, journal_retry_ms_max: max } = limits;
  return Math.min(max, min * 2 ** Math.min(failed, 10)) * (0.5 + random / 2);
}

export function createUnsettled(time: Time, random: Random) {
  const retryAt = new Map<number, number>();
  const failures = new Map<number, number>();
  return {
    add(partition: number) {
      const failed = failures.get(partition) ?? 0;
      failures.set(partition, failed + 1);
      retryAt.set(partition, time.monotonic() + retryMs(failed, random.number()));
    },
    has: (partition: number) => retryAt.has(partition),
    settled(partitions: Iterable<number>) {
      if (failures.size > 0) for (const partition of partitions) failures.delete(partition);
    },
    /**
     * Returns the partitions whose backoff has ended and that have no entries in flight. Their journals can be read
     * again.
     */
    takeBack(isInFlight: (partition: number) => boolean): number[] {
      const now = time.monotonic();
      const back = [...retryAt].filter(([partition, at]) => at <= now && !isInFlight(partition));
      for (const [partition] of back) retryAt.delete(partition);
      return back.map(([partition]) => partition);
    },
    isEmpty: () => retryAt.size === 0,
  };
}

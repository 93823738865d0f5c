/** Limits the bytes that a person and their bots together may upload per day and store in total, over all nodes. */
import { ApiError, fail } from '../../errors.js';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/stored_files.js';
import type { StoreContext } from '../core/context.js';

/** Upload limits in bytes; 0 means unlimited. */
export interface UploadBounds {
  readonly bytesPerDay: number;
  readonly bytesTotal: number;
}

export interface Uploads {
  /** Counts an upload. Error: `too_many_requests`. */
  take(owner: number, bytes: number): Promise<void>;
  /**
   * Counts a file before it is stored, at least as limits.stored_file_bytes_min. While Postgres is unreachable nothing
   * is counted, and only the daily limit applies. Error: `too_much_stored`.
   */
  noteStored(owner: number, key: string, bytes: number): Promise<void>;
  /** Removes files that are no longer stored from the count. */
  forgetStored(keys: readonly string[]): Promise<void>;
  /** Bytes of an owner's stored files, and their limit; 0 means unlimited. */
  stored(owner: number): Promise<{ readonly bytes: number; readonly max: number }>;
}

const unit = 1024;
const day_us = 86_400_000_000;

export function createUploads(
  { scripts, keys, db }: StoreContext,
  { bytesPerDay, bytesTotal }: UploadBounds,
): Uploads {
  const calls = Math.ceil(bytesPerDay / unit);
  return {
    async take(owner, bytes) {
      if (calls === 0 || bytes === 0) return;
      const partition = keys.partitions.of(owner);
      const { wait } = await scripts.call(
        'limits/take',
        partition,
        { bucket: keys.rate(partition, `upload:${owner}`) },
        { calls, interval_us: Math.round(day_us / calls), count: Math.ceil(bytes / unit) },
      );
      if (wait > 0) fail('too_many_requests', { retry_after: Math.ceil(wait / 1_000) });
    },
    async noteStored(owner, key, bytes) {
      const counted = Math.max(bytes, limits.stored_file_bytes_min);
      // Count even without a limit, because a limit set later includes files that are already stored.
      const max = bytesTotal || Number.MAX_SAFE_INTEGER;
      const fits = await rows.noteStored(db, owner, key, counted, max).catch((error: unknown) => {
        if (error instanceof ApiError && error.kind === 'unavailable') return true;
        throw error;
      });
      if (!fits) fail('too_much_stored', { what: String(bytesTotal) });
    },
    async forgetStored(keys) {
      await rows.forgetStored(db, keys);
    },
    stored: async (owner) => ({ bytes: await rows.loadStored(db, owner), max: bytesTotal }),
  };
}

/** How many bytes a person and their bots together may upload in a day, and how many may be stored, on all nodes. */
import { ApiError, fail } from '../../errors.js';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/stored_files.js';
import type { StoreContext } from '../core/context.js';

/** What may be uploaded; 0 is no bound. */
export interface UploadBounds {
  readonly bytesPerDay: number;
  readonly bytesTotal: number;
}

export interface Uploads {
  /** Counts an upload. Error: `too_many_requests`. */
  take(owner: number, bytes: number): Promise<void>;
  /**
   * Counts a file that is about to be stored, as limits.stored_file_bytes_min if it is smaller. Not counted while Postgres is away:
   * the bound of a day holds. Error: `too_much_stored`.
   */
  noteStored(owner: number, key: string, bytes: number): Promise<void>;
  /** Says that these files are no longer stored. */
  forgetStored(keys: readonly string[]): Promise<void>;
  /** Bytes of stored files, and how many there may be at most; 0 for no bound. */
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
      // Without a bound it is counted too: one that is set later holds for what is stored.
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

/**
 * Limits how many bytes a person and their bots together may upload per day and store in total. All nodes share the
 * limits.
 */
import { ApiError, fail } from '../../errors.js';
import * as rows from '../../postgres/stored_files.js';
import { takeCalls } from '../core/buckets.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

/** Upload limits in bytes. 0 means unlimited. */
export interface UploadBounds {
  readonly bytesPerDay: number;
  readonly bytesTotal: number;
}

export type Uploads = ReturnType<typeof createUploads>;

const unit = 1024;
const day_us = 86_400_000_000;

export function createUploads(context: StoreContext, { bytesPerDay, bytesTotal }: UploadBounds) {
  const { db } = context;
  const calls = Math.ceil(bytesPerDay / unit);
  return {
    /** Counts bytes against the daily limit. Error: `too_many_requests`. */
    async take(owner: number, bytes: number) {
      if (calls === 0 || bytes === 0) return;
      const count = Math.ceil(bytes / unit);
      await takeCalls(context, 'upload', owner, { calls, intervalUs: day_us / calls, count });
    },
    /**
     * Counts a file before it is stored. A smaller file counts as limits.stored_file_bytes_min bytes. While Postgres is
     * unreachable, only the daily limit applies. Error: `too_much_stored`.
     */
    async noteStored(owner: number, key: string, bytes: number) {
      const counted = Math.max(bytes, limits.stored_file_bytes_min);
      // Counts files even if there is no limit now, because a limit that is set later also applies to files stored
      // before.
      const max = bytesTotal || Number.MAX_SAFE_INTEGER;
      const fits = await rows.noteStored(db, owner, key, counted, max).catch((error: unknown) => {
        if (error instanceof ApiError && error.kind === 'unavailable') return true;
        throw error;
      });
      if (!fits) fail('too_much_stored', { what: String(bytesTotal) });
    },
    /**
     * Returns whether the file counts against the limit of `owner`. Some files count against nobody's limit. Error:
     * `unavailable`.
     */
    isStoredBy: (owner: number, key: string) => rows.isStoredBy(db, owner, key),
    async forgetStored(keys: readonly string[]) {
      await rows.forgetStored(db, keys);
    },
    stored: async (owner: number): Promise<{ readonly bytes: number; readonly max: number }> => ({
      bytes: await rows.loadStored(db, owner),
      max: bytesTotal,
    }),
  };
}

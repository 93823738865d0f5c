/** How many bytes a person and their bots together may upload in a day, on all nodes. */
import { fail } from '../../errors.js';
import type { StoreContext } from '../core/context.js';

export interface Uploads {
  /** Counts an upload. Error: `too_many_requests`. */
  take(owner: number, bytes: number): Promise<void>;
}

const unit = 1024;
const day_us = 86_400_000_000;

/** `bytesPerDay` 0 is no bound. */
export function createUploads({ scripts, keys }: StoreContext, bytesPerDay: number): Uploads {
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
  };
}

/** Takes tokens for calls from token buckets in Redis. All nodes share an account's bucket. */
import { fail } from '../../errors.js';
import type { StoreContext } from './context.js';

/**
 * Takes calls from an account's bucket. The bucket holds up to `calls` calls, and gets one back every `intervalUs`.
 * Error: `too_many_requests`.
 */
export async function takeCalls(
  { scripts, keys }: Pick<StoreContext, 'scripts' | 'keys'>,
  what: string,
  account: number,
  { calls, intervalUs, count = 1 }: { calls: number; intervalUs: number; count?: number },
): Promise<void> {
  const partition = keys.partitions.of(account);
  const bucket = keys.rate(partition, `${what}:${account}`);
  const args = { calls, interval_us: Math.round(intervalUs), count };
  const { wait } = await scripts.call('limits/take', partition, { bucket }, args);
  if (wait > 0) fail('too_many_requests', { retry_after: Math.ceil(wait / 1_000) });
}

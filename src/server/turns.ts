/**
 * Limits how many calls of one account run at the same time in this process. Further calls wait in order. If too many
 * calls are waiting, further calls are refused.
 */
import { fail } from '../errors.js';

export function createTurns(atOnce: number, waitingMax: number) {
  const accounts = new Map<number | string, { running: number; readonly waiting: Array<() => void> }>();
  return {
    /** Runs `work` when its turn comes. Throws `too_many_requests` if too many calls of the account are waiting. */
    async run<T>(account: number | string, work: () => T | Promise<T>): Promise<T> {
      const own = accounts.get(account) ?? { running: 0, waiting: [] };
      accounts.set(account, own);
      if (own.running < atOnce) own.running++;
      else if (own.waiting.length >= waitingMax) fail('too_many_requests', { retry_after: 1 });
      else await new Promise<void>((resolve) => own.waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = own.waiting.shift();
        if (next) next();
        else if (--own.running === 0) accounts.delete(account);
      }
    },
  };
}

/** Waits until a condition is true. Checks the condition only after a notification. */
import { ApiError } from '../errors.js';
import type { Time } from '../time.js';

export const unavailable = (why?: string): ApiError =>
  new ApiError('unavailable', { retry_after: 1 }, why === undefined ? {} : { cause: new Error(why) });

export function createWaiting(time: Time) {
  const waiting = new Set<() => void>();
  return {
    wake() {
      for (const recheck of [...waiting]) recheck();
    },
    /** Resolves when `holds` returns true. Rejects with `unavailable` after `msMax`. */
    until(holds: () => boolean, msMax: number): Promise<void> {
      if (holds()) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const timer = time.after(msMax, () => {
          waiting.delete(recheck);
          reject(unavailable(`Redis was unreachable for ${Math.round(msMax)} ms`));
        });
        const recheck = () => {
          if (!holds()) return;
          time.cancel(timer);
          waiting.delete(recheck);
          resolve();
        };
        waiting.add(recheck);
      });
    },
  };
}

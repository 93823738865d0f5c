/** Waits until a condition holds. The condition is rechecked only when notified. */
import { ApiError } from '../errors.js';

/** The caller's error for an unreachable Redis. `why` only appears in the log. */
export const unavailable = (why?: string): ApiError =>
  new ApiError('unavailable', { retry_after: 1 }, why === undefined ? {} : { cause: new Error(why) });

export interface Waiting {
  /** Rechecks all waiting conditions. */
  wake(): void;
  /** Resolves once `holds` returns true; rejects with `unavailable` after `msMax`. */
  until(holds: () => boolean, msMax: number): Promise<void>;
}

export function createWaiting(): Waiting {
  const waiting = new Set<() => void>();
  return {
    wake() {
      for (const recheck of [...waiting]) recheck();
    },
    until(holds, msMax) {
      if (holds()) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(recheck);
          reject(unavailable(`Redis was unreachable for ${Math.round(msMax)} ms`));
        }, msMax);
        const recheck = () => {
          if (!holds()) return;
          clearTimeout(timer);
          waiting.delete(recheck);
          resolve();
        };
        waiting.add(recheck);
      });
    },
  };
}

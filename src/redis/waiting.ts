/** Waits until a condition is true. Checks the condition again only after a notification. */
import { ApiError } from '../errors.js';

export const unavailable = (why?: string): ApiError =>
  new ApiError('unavailable', { retry_after: 1 }, why === undefined ? {} : { cause: new Error(why) });

export function createWaiting() {
  const waiting = new Set<() => void>();
  return {
    wake() {
      for (const recheck of [...waiting]) recheck();
    },
    /** Resolves once `holds` returns true. Rejects with `unavailable` after `msMax`. */
    until(holds: () => boolean, msMax: number): Promise<void> {
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

/** Waiting until something holds that changes only when somebody says so. */
import { ApiError } from '../errors.js';

/** `why` is for the log. */
export const unavailable = (why?: string): ApiError =>
  new ApiError('unavailable', { retry_after: 1 }, why === undefined ? {} : { cause: new Error(why) });

export interface Waiting {
  /** Something changed: whoever waits looks. */
  wake(): void;
  /** Resolves once `holds`, or rejects with `unavailable` after `msMax`. */
  until(holds: () => boolean, msMax: number): Promise<void>;
}

export function createWaiting(): Waiting {
  const waiting = new Set<() => void>();
  return {
    wake() {
      for (const look of [...waiting]) look();
    },
    until(holds, msMax) {
      if (holds()) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(look);
          reject(unavailable(`Redis was away for ${Math.round(msMax)} ms`));
        }, msMax);
        const look = () => {
          if (!holds()) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
      });
    },
  };
}

/**
 * Limits the bots that one process serves, with a FIFO semaphore. A bot counts from the moment when its lease is
 * requested.
 */

export function createSemaphore(max: number) {
  const waiting: Array<() => void> = [];
  let taken = 0;
  return {
    get full() {
      return taken >= max;
    },
    async acquire() {
      if (taken < max) taken++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
    },
    release() {
      const next = waiting.shift();
      if (next) next();
      else taken--;
    },
  };
}

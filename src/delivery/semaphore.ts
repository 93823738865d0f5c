/** Creates a FIFO semaphore over the bots that one process serves. A bot counts from the request of its lease. */

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

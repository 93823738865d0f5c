/** FIFO semaphore over the bots one process serves, including those whose lease it is requesting. */

export interface Semaphore {
  readonly full: boolean;
  /** Resolves when a permit is acquired. */
  acquire(): Promise<void>;
  release(): void;
}

export function createSemaphore(max: number): Semaphore {
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
      // A waiting caller gets the permit directly.
      const next = waiting.shift();
      if (next) next();
      else taken--;
    },
  };
}

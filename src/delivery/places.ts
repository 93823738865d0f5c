/** FIFO semaphore over the bots one process serves, including those whose lease it is requesting. */

export interface Places {
  readonly full: boolean;
  /** Resolves when a permit is acquired. */
  take(): Promise<void>;
  give(): void;
}

export function createPlaces(max: number): Places {
  const waiting: Array<() => void> = [];
  let taken = 0;
  return {
    get full() {
      return taken >= max;
    },
    async take() {
      if (taken < max) taken++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
    },
    give() {
      // A waiting caller gets the permit directly.
      const next = waiting.shift();
      if (next) next();
      else taken--;
    },
  };
}

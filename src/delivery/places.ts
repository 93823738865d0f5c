/** How many bots a process may have at a time, those it is just asking for too: who finds no room waits in turn. */

export interface Places {
  readonly full: boolean;
  /** Resolves with a place. */
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
      // A place that is waited for changes hands.
      const next = waiting.shift();
      if (next) next();
      else taken--;
    },
  };
}

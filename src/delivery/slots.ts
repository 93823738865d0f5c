/** How many updates a process may have open at once, over all bots: who finds none free waits for its turn. */

export interface Slots {
  /** True takes a slot. Otherwise `again` is called once, in turn, when one may be free. */
  take(again: () => void): boolean;
  give(): void;
  readonly taken: number;
}

export function createSlots(max: number): Slots {
  const waiting = new Set<() => void>();
  let taken = 0;
  return {
    take(again) {
      if (taken >= max) {
        waiting.add(again);
        return false;
      }
      taken++;
      return true;
    },
    give() {
      taken--;
      // One that was told may have no use for a slot any more.
      for (const again of waiting) {
        if (taken >= max) return;
        waiting.delete(again);
        again();
      }
    },
    get taken() {
      return taken;
    },
  };
}

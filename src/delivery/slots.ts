/**
 * How many updates a process may have open at once, over all bots. A bot may hold as many as are still free: the more are taken, the
 * less each may have, so bots whose receivers hang leave room for the others.
 */

export interface Slots {
  /** True takes a slot for who holds `own` already. Otherwise `again` is called once, in turn, when one may be free. */
  take(own: number, again: () => void): boolean;
  give(): void;
  readonly taken: number;
}

/** Who waits is told in turn, so many at each slot that becomes free: not each of them may have it. */
const toldMax = 16;

export function createSlots(max: number): Slots {
  const waiting = new Set<() => void>();
  let taken = 0;
  return {
    take(own, again) {
      if (own >= max - taken) {
        waiting.add(again);
        return false;
      }
      taken++;
      return true;
    },
    give() {
      taken--;
      // Who is told waits anew, at the end, if it may have none.
      let left = Math.min(waiting.size, toldMax);
      for (const again of waiting) {
        if (left-- === 0 || taken >= max) return;
        waiting.delete(again);
        again();
      }
    },
    get taken() {
      return taken;
    },
  };
}

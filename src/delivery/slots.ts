/**
 * Limits the updates in flight in one process, over all bots. A bot may use at most as many slots as are still free.
 * The limit per bot therefore shrinks under load, and bots with hanging receivers leave slots for the others.
 */

export interface Slots {
  /**
   * Acquires a slot for a bot that holds `own` slots and returns true. Otherwise returns false and calls `again`
   * once, in FIFO order, when a slot may be free.
   */
  take(own: number, again: () => void): boolean;
  give(): void;
  readonly taken: number;
}

/** How many waiting callers are notified per freed slot, because some may not be allowed to take it. */
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
      // A notified caller that gets no slot waits again at the end.
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

/**
 * Limits the updates in flight in one process, across all bots. A bot gets another slot only while it has fewer slots
 * than are free. The limit per bot therefore shrinks under load, and bots with slow receivers leave slots for other
 * bots.
 */

export type Slots = ReturnType<typeof createSlots>;

/** How many waiting callers are notified per freed slot. Some of them may not be allowed to take it. */
const notifiedMax = 16;

export function createSlots(max: number) {
  const waiting = new Set<() => void>();
  let taken = 0;
  return {
    /**
     * Acquires a slot for a bot that holds `own` slots and returns true. Otherwise returns false, and calls `again`
     * once when a slot may be free. Waiting callers are served in FIFO order.
     */
    take(own: number, again: () => void): boolean {
      if (own >= max - taken) {
        waiting.add(again);
        return false;
      }
      taken++;
      return true;
    },
    give() {
      taken--;
      // A caller that was notified and gets no slot goes to the end of the queue.
      let left = Math.min(waiting.size, notifiedMax);
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

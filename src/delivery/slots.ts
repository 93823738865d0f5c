/**
 * Divides a number of slots in one process among owners, and the slots of an owner among the queues of their bots. A
 * slot stands for an update in flight or for a drain.
 *
 * An owner gets another slot only while they have fewer slots than are free. The difference is the owner's room. A
 * queue gets another slot only while it has less than a quarter of this room. The limits therefore shrink under load.
 * Owners with slow receivers leave slots for other owners, and queues with slow receivers leave slots for other queues
 * of their owner (decision 0085).
 */

export type Slots = ReturnType<typeof createSlots>;

/** How many queues are notified per freed slot. Some queues may not be allowed to take the slot, or may not need it. */
const notifiedMax = 16;

interface Share {
  taken: number;
  readonly waiting: Set<() => void>;
}

/** Returns whether a queue that has `own` slots or bytes may get more of them. */
export const mayTake = (own: number, room: number): boolean => own * 4 < room;

export function createSlots(max: number) {
  const shares = new Map<number, Share>();
  /** The owners with waiting queues. The owner whose turn is next comes first. */
  const turns = new Set<number>();
  let taken = 0;
  /** The number of waiting queues of all owners. */
  let waiting = 0;

  function shareOf(owner: number): Share {
    const share = shares.get(owner) ?? { taken: 0, waiting: new Set() };
    shares.set(owner, share);
    return share;
  }

  function forgetUnused(owner: number): void {
    const share = shares.get(owner);
    if (share?.taken === 0 && share.waiting.size === 0) shares.delete(owner);
  }

  const roomOf = (share: Share) => max - taken - share.taken;

  /** Notifies a queue of the owner. If the queue gets no slot, it goes to the end of the queues of its owner. */
  function notify(owner: number): void {
    const share = shareOf(owner);
    const [again] = roomOf(share) > 0 ? share.waiting : [];
    turns.delete(owner);
    if (again !== undefined && share.waiting.delete(again)) waiting--;
    if (share.waiting.size > 0) turns.add(owner);
    again?.();
    forgetUnused(owner);
  }

  return {
    /**
     * Acquires a slot for a queue that holds `own` slots and returns true. Otherwise returns false, and calls `again`
     * one time, when a slot may be free. Owners with waiting queues take turns. The waiting queues of an owner are
     * served in FIFO order.
     */
    take(owner: number, own: number, again: () => void): boolean {
      const share = shareOf(owner);
      if (!mayTake(own, roomOf(share))) {
        if (!share.waiting.has(again)) waiting++;
        share.waiting.add(again);
        turns.add(owner);
        return false;
      }
      share.taken++;
      taken++;
      return true;
    },
    give(owner: number): void {
      shareOf(owner).taken--;
      taken--;
      // An owner who still waits goes to the end of the turns, so the loop reaches the owner again.
      let left = Math.min(waiting, notifiedMax);
      for (const next of turns) {
        if (left-- === 0 || taken >= max) break;
        notify(next);
      }
      forgetUnused(owner);
    },
    /**
     * Returns how many slots an owner has, how many queues of the owner wait, and how many more slots the owner could
     * use.
     */
    of(owner: number): { readonly taken: number; readonly waiting: number; readonly room: number } {
      const share = shares.get(owner);
      const own = share?.taken ?? 0;
      return { taken: own, waiting: share?.waiting.size ?? 0, room: max - taken - own };
    },
    get taken() {
      return taken;
    },
    get full() {
      return taken >= max;
    },
  };
}

/**
 * Divides the slots of one process among owners, and an owner's slots among the queues of the owner's bots. A slot
 * stands for an update in flight or for a drain.
 *
 * An owner's room is the number of free slots minus the number of slots that the owner has. An owner gets another slot
 * only while their room is above 0. A queue gets another slot only while it has fewer slots than a quarter of its
 * owner's room. The fewer slots are free, the lower these limits are. Owners with slow receivers thus leave slots for
 * other owners, and queues with slow receivers leave slots for their owner's other queues (decision 0085).
 */

export type Slots = ReturnType<typeof createSlots>;

/**
 * How many queues are notified when a slot becomes free. A single notification could be wasted, because the notified
 * queue may no longer need the slot or may already have its share.
 */
const notifiedMax = 16;

interface Share {
  taken: number;
  readonly waiting: Set<() => void>;
}

/**
 * Returns whether a queue that has `own` slots or bytes may take more. `room` is the number of free slots or bytes,
 * minus the number that the queue's owner already has.
 */
export const mayTake = (own: number, room: number): boolean => own * 4 < room;

export function createSlots(max: number) {
  const shares = new Map<number, Share>();
  /** The owners with waiting queues, in the order in which they are served. */
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

  /**
   * Notifies the owner's first waiting queue. If this queue gets no slot, it joins the end of the owner's waiting
   * queues.
   */
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
     * Acquires a slot for a queue that already has `own` slots. Returns true if the queue gets the slot. Otherwise
     * returns false, and calls `again` once when a slot may be free. Owners with waiting queues take turns. The waiting
     * queues of one owner are served in FIFO order.
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
      // `notify` can move an owner to the end of `turns`. The loop then reaches this owner again, so it needs a limit.
      let left = Math.min(waiting, notifiedMax);
      for (const next of turns) {
        if (left-- === 0 || taken >= max) break;
        notify(next);
      }
      forgetUnused(owner);
    },
    /**
     * Returns how many slots an owner has (`taken`) and how many of the owner's queues wait. `room` is the number of
     * free slots minus the number of slots that the owner has.
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

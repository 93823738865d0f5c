/** Buffers updates that a drain gave up, until a script moves them from the queue to the dead letters. */
import { limits } from '../limits.js';
import type { DeadReason, Deliveries, Delivery } from '../store/webhooks/deliveries.js';

export interface Graves {
  readonly count: number;
  add(delivery: Delivery, reason: DeadReason): void;
  /**
   * Moves the buffered updates to the dead letters. Calls `settled` for each one moved, and `refused` for each one
   * that must wait because the journal is full. Returns false when the lease was lost.
   */
  bury(settled: (chat: string) => void, refused: (chat: string, error: unknown) => void): Promise<boolean>;
}

export function createGraves(deliveries: Deliveries, bot: number, fence: string): Graves {
  let dead: Array<{ readonly delivery: Delivery; readonly reason: DeadReason }> = [];
  return {
    get count() {
      return dead.length;
    },
    add(delivery, reason) {
      dead.push({ delivery, reason });
    },
    async bury(settled, refused) {
      const burying = dead;
      dead = [];
      for (const reason of new Set(burying.map((each) => each.reason))) {
        const all = burying.filter((each) => each.reason === reason).map(({ delivery }) => delivery);
        for (let i = 0; i < all.length; i += limits.webhook_bury_batch_max) {
          const own = all.slice(i, i + limits.webhook_bury_batch_max);
          const ids = own.map(({ id }) => id);
          try {
            if (!(await deliveries.bury(bot, fence, reason, ids))) return false;
            for (const { chat } of own) settled(chat);
          } catch (thrown) {
            for (const { chat } of own) refused(chat, thrown);
          }
        }
      }
      return true;
    },
  };
}

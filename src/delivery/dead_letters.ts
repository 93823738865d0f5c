/** Buffers updates that a drain gave up, until a script moves them from the queue to the dead letters. */
import { limits } from '../limits.js';
import type { DeadReason, Deliveries, Delivery } from '../store/webhooks/deliveries.js';

export interface DeadLetterBuffer {
  readonly count: number;
  add(delivery: Delivery, reason: DeadReason): void;
  /**
   * Moves the buffered updates to the dead letters. Calls `settled` for each one moved, and `refused` for each one
   * that must wait because the journal is full. Returns false when the lease was lost.
   */
  flush(settled: (chat: string) => void, refused: (chat: string, error: unknown) => void): Promise<boolean>;
}

export function createDeadLetterBuffer(deliveries: Deliveries, bot: number, fence: string): DeadLetterBuffer {
  let dead: Array<{ readonly delivery: Delivery; readonly reason: DeadReason }> = [];
  return {
    get count() {
      return dead.length;
    },
    add(delivery, reason) {
      dead.push({ delivery, reason });
    },
    async flush(settled, refused) {
      const moving = dead;
      dead = [];
      for (const reason of new Set(moving.map((each) => each.reason))) {
        const all = moving.filter((each) => each.reason === reason).map(({ delivery }) => delivery);
        for (let i = 0; i < all.length; i += limits.webhook_bury_batch_max) {
          const own = all.slice(i, i + limits.webhook_bury_batch_max);
          const ids = own.map(({ id }) => id);
          try {
            if (!(await deliveries.deadLetter(bot, fence, reason, ids))) return false;
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

/** Collects the updates that a worker will not retry. A script then moves them from the queue to the dead letters. */

import { groupBy, piecesOf } from '../store/core/groups.js';
import type { DeadReason, Deliveries, Delivery } from '../store/webhooks/deliveries.js';
import { deliveryLimits as limits } from './limits.js';

export type DeadLetterBuffer = ReturnType<typeof createDeadLetterBuffer>;

export function createDeadLetterBuffer(deliveries: Deliveries, bot: number, fence: string) {
  let dead: Array<{ readonly delivery: Delivery; readonly reason: DeadReason }> = [];
  return {
    get count() {
      return dead.length;
    },
    add(delivery: Delivery, reason: DeadReason) {
      dead.push({ delivery, reason });
    },
    /**
     * Moves the collected updates to the dead letters. Calls `settled` for each moved update. Calls `refused` for each
     * update that must wait because the journal is full. Returns false if the lease was lost.
     */
    async flush(
      settled: (chat: string) => void,
      refused: (chat: string, error: unknown) => void,
    ): Promise<boolean> {
      const moving = [...groupBy(dead, ({ reason }) => reason)].flatMap(([reason, all]) =>
        piecesOf(all, limits.webhook_bury_batch_max).map((own) => ({ reason, own })),
      );
      dead = [];
      for (const { reason, own } of moving) {
        const ids = own.map(({ delivery }) => delivery.id);
        try {
          if (!(await deliveries.deadLetter(bot, fence, reason, ids))) return false;
          for (const { delivery } of own) settled(delivery.chat);
        } catch (thrown) {
          for (const { delivery } of own) refused(delivery.chat, thrown);
        }
      }
      return true;
    },
  };
}

/** Subscribes one drain to hints. A hint says that the drain's queue or webhook may have changed. */
import type { Deliveries } from '../store/webhooks/deliveries.js';
import type { Hint } from '../store/webhooks/hints.js';
import type { Time } from '../time.js';

export type HintSubscription = ReturnType<typeof subscribeToHints>;

const plain: Hint = { changed: false, copy: null };

/**
 * Subscribes after `delayMs`. Calls `onHint` for each hint. Also calls `onHint` once when the subscription becomes
 * active, because earlier hints were missed.
 */
export function subscribeToHints(
  time: Time,
  deliveries: Pick<Deliveries, 'listen'>,
  bot: number,
  delayMs: number,
  onHint: (hint: Hint) => void,
  onError: (error: unknown) => void,
) {
  let active = delayMs === 0;
  let ended = false;
  let unlisten: (() => void) | undefined;

  async function listen(): Promise<void> {
    active = true;
    try {
      unlisten = await deliveries.listen(bot, onHint);
      if (ended) unlisten();
    } catch (thrown) {
      active = false;
      onError(thrown);
    }
    if (!ended) onHint(plain);
  }

  const timer = time.after(delayMs, listen);
  return {
    get active() {
      return active;
    },
    end() {
      ended = true;
      time.cancel(timer);
      unlisten?.();
    },
  };
}

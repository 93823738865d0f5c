/** Subscribes one drain to hints that its bot's queue or webhook may have changed. */
import type { Deliveries } from '../store/webhooks/deliveries.js';

export interface HintSubscription {
  /** The subscription is active or being made. */
  readonly active: boolean;
  end(): void;
}

/**
 * Subscribes after `delayMs`. Calls `onHint` for each hint; its argument says whether the webhook may have changed.
 * Also calls it once when the subscription is active, because earlier changes sent no hint.
 */
export function subscribeToHints(
  deliveries: Pick<Deliveries, 'listen'>,
  bot: number,
  delayMs: number,
  onHint: (webhook: boolean) => void,
  onError: (error: unknown) => void,
): HintSubscription {
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
    if (!ended) onHint(false);
  }

  const timer = setTimeout(listen, delayMs);
  return {
    get active() {
      return active;
    },
    end() {
      ended = true;
      clearTimeout(timer);
      unlisten?.();
    },
  };
}

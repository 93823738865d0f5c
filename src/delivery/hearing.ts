/** Subscribes one drain to hints that its bot's queue or webhook may have changed. */
import type { Deliveries } from '../store/webhooks/deliveries.js';

export interface Hearing {
  /** The subscription is active or being made. */
  readonly on: boolean;
  end(): void;
}

/**
 * Subscribes after `delayMs`. Calls `hear` for each hint; its argument says whether the webhook may have changed.
 * Also calls it once when the subscription is active, because earlier changes sent no hint.
 */
export function hearOf(
  deliveries: Pick<Deliveries, 'listen'>,
  bot: number,
  delayMs: number,
  hear: (webhook: boolean) => void,
  onError: (error: unknown) => void,
): Hearing {
  let on = delayMs === 0;
  let ended = false;
  let unlisten: (() => void) | undefined;

  async function listen(): Promise<void> {
    on = true;
    try {
      unlisten = await deliveries.listen(bot, hear);
      if (ended) unlisten();
    } catch (thrown) {
      on = false;
      onError(thrown);
    }
    if (!ended) hear(false);
  }

  const timer = setTimeout(listen, delayMs);
  return {
    get on() {
      return on;
    },
    end() {
      ended = true;
      clearTimeout(timer);
      unlisten?.();
    },
  };
}

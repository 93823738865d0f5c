/** Hears, for one drain, that its bot's queue or webhook may have changed. */
import type { Deliveries } from '../store/webhooks/deliveries.js';

export interface Hearing {
  /** Hints come, or soon will. */
  readonly on: boolean;
  end(): void;
}

/**
 * Listens after `delayMs`; calls `hear` for each hint, telling whether it is of the webhook, and once when the subscription stands:
 * what came before gave none.
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

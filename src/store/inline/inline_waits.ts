/**
 * Waits for bots' answers to inline queries. A hint reports an answer, and a check every second finds answers whose
 * hints were lost.
 */
import type { Hints } from '../../redis/hints.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

interface Waiting<T> {
  readonly bot: number;
  /** Sends the query and returns its id. */
  readonly ask: () => Promise<string>;
  /** Returns the answer, or null if there is none yet. */
  readonly read: (id: string) => Promise<T | null>;
  /** Registers a listener for the client's disconnect. */
  readonly onGone: (listener: () => void) => void;
}

export class InlineWaits {
  readonly #context: Pick<StoreContext, 'keys' | 'time'>;
  readonly #hints: Hints;
  readonly #waking = new Set<() => void>();
  #closing = false;

  constructor(context: Pick<StoreContext, 'keys' | 'time'>, hints: Hints) {
    this.#context = context;
    this.#hints = hints;
  }

  /** Makes all waiting calls return without an answer. */
  close(): void {
    this.#closing = true;
    for (const wake of this.#waking) wake();
  }

  /**
   * Sends a query and waits for its answer, up to `limits.inline_wait_ms_max`. Returns null if no answer arrives in
   * time, if the client disconnects, or if this node shuts down.
   */
  async answer<T>({ bot, ask, read, onGone }: Waiting<T>): Promise<T | null> {
    const { keys, time } = this.#context;
    /**
     * The ids of this bot's queries that have been answered. All of them are collected until this call knows the id of
     * its own query.
     */
    const answered = new Set<string>();
    let id = '';
    let gone = false;
    let wake = () => {};
    const end = () => {
      gone = true;
      wake();
    };
    onGone(end);
    const onHint = (hint: Buffer) => {
      const name = String(hint);
      if (id === '' || name === id) answered.add(name);
      if (name === id) wake();
    };
    this.#waking.add(end);
    const unlisten = await this.#hints.listen(keys.inlineChannel(bot), onHint);
    try {
      id = await ask();
      const deadline = time.monotonic() + limits.inline_wait_ms_max;
      for (;;) {
        const left = deadline - time.monotonic();
        if (gone || this.#closing || left <= 0) return null;
        if (!answered.has(id))
          await new Promise<void>((resolve) => {
            const timer = time.after(Math.min(left, limits.poll_tick_ms), resolve);
            wake = () => {
              time.cancel(timer);
              resolve();
            };
          });
        const found = gone ? null : await read(id);
        if (found !== null) return found;
        answered.clear();
      }
    } finally {
      this.#waking.delete(end);
      unlisten();
    }
  }
}

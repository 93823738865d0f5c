/**
 * Collects delivered updates, and writes them to Postgres twice a second. Deliveries never wait for the write. A
 * process that is killed loses the updates that it has not written. While Postgres is down, updates beyond a limit are
 * counted but not kept. One owner's updates take up at most half of the buffer.
 */
import { botOf } from '../store/core/queue_ids.js';
import { packUpdate } from '../store/updates/update_record.js';
import type { Delivery } from '../store/webhooks/deliveries.js';
import type { KeptUpdate, KeptUpdates } from '../store/webhooks/kept_updates.js';
import type { Time, Timer } from '../time.js';
import { createHeldBytes } from './held_bytes.js';
import { deliveryLimits as limits } from './limits.js';

export interface UpdateKeeperOptions {
  append: KeptUpdates['append'];
  onError(error: unknown): void;
  readonly time: Time;
}

/** Each update counts as at least this many bytes, so that the limit of bytes also limits the number of updates. */
const bytes_min = Math.ceil(limits.delivery_records_waiting_bytes_max / limits.delivery_attempts_waiting_max);

interface Waiting {
  readonly owner: number;
  readonly bytes: number;
  readonly update: KeptUpdate;
}

export class UpdateKeeper {
  readonly #options: UpdateKeeperOptions;
  readonly #held = createHeldBytes(limits.delivery_records_waiting_bytes_max);
  #waiting: Waiting[] = [];
  #unkept = 0;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: UpdateKeeperOptions) {
    this.#options = options;
  }

  /** Keeps a delivered update. Does not keep inline queries, because nobody waits for the answer to an old query. */
  note(owner: number, queue: number, { entry, fields, bytes: size }: Delivery): void {
    if (entry.kind === 'inline_query') return;
    const bytes = Math.max(size, bytes_min);
    if (bytes > this.#held.room(owner) || size > limits.delivery_record_kept_bytes_max) {
      this.#unkept++;
      return;
    }
    this.#held.add(owner, bytes);
    const update = {
      bot: botOf(queue),
      updateId: entry.shownId,
      at: this.#options.time.now(),
      user: entry.from.id > 0 ? entry.from.id : 0,
      record: packUpdate(fields),
    };
    this.#waiting.push({ owner, bytes, update });
    this.#arm();
  }

  /** How many delivered updates are waiting to be written to Postgres. */
  waiting(): number {
    return this.#waiting.length;
  }

  /**
   * How many delivered updates were not kept. An update is not kept if it is too large or if too many updates are
   * waiting.
   */
  unkept(): number {
    return this.#unkept;
  }

  async stop(): Promise<void> {
    this.#options.time.cancel(this.#timer);
    await this.#writing;
    await this.#write().catch(this.#options.onError);
  }

  async #write(): Promise<void> {
    const taken = this.#waiting.splice(0, limits.kept_updates_batch_max);
    if (taken.length === 0) return;
    try {
      await this.#options.append(taken.map(({ update }) => update));
    } catch (error) {
      this.#waiting.unshift(...taken);
      throw error;
    }
    for (const { owner, bytes } of taken) this.#held.add(owner, -bytes);
    await this.#write();
  }

  #arm(): void {
    if (this.#writing !== undefined) return;
    this.#timer ??= this.#options.time
      .after(limits.delivery_attempts_flush_ms, () => {
        this.#timer = undefined;
        this.#writing = this.#write()
          .catch(this.#options.onError)
          .finally(() => {
            this.#writing = undefined;
            if (this.#waiting.length > 0) this.#arm();
          });
      })
      .unref();
  }
}

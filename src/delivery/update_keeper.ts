/**
 * Collects delivered updates, and writes them to Postgres twice a second. Deliveries never wait for the write. A process
 * that is killed loses the updates that it has not written. While Postgres is down, updates beyond a limit are only
 * counted.
 */
import { botOf } from '../store/core/queue_ids.js';
import { packUpdate } from '../store/updates/update_record.js';
import type { Delivery } from '../store/webhooks/deliveries.js';
import type { KeptUpdate, KeptUpdates } from '../store/webhooks/kept_updates.js';
import type { Time, Timer } from '../time.js';
import { deliveryLimits as limits } from './limits.js';

export interface UpdateKeeperOptions {
  append: KeptUpdates['append'];
  onError(error: unknown): void;
  readonly time: Time;
}

export class UpdateKeeper {
  readonly #options: UpdateKeeperOptions;
  #waiting: KeptUpdate[] = [];
  #bytes = 0;
  #unkept = 0;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: UpdateKeeperOptions) {
    this.#options = options;
  }

  /** Keeps a delivered update. Nobody waits for the answer to an old inline query, so it is not kept. */
  note(queue: number, { entry, fields, bytes }: Delivery): void {
    if (entry.kind === 'inline_query') return;
    const isFull =
      this.#waiting.length >= limits.delivery_attempts_waiting_max ||
      this.#bytes + bytes > limits.delivery_records_waiting_bytes_max;
    if (isFull || bytes > limits.delivery_record_kept_bytes_max) {
      this.#unkept++;
      return;
    }
    const record = packUpdate(fields);
    this.#bytes += record.length;
    this.#waiting.push({
      bot: botOf(queue),
      updateId: entry.shownId,
      at: this.#options.time.now(),
      user: entry.from.id > 0 ? entry.from.id : 0,
      record,
    });
    this.#arm();
  }

  /** How many delivered updates were not kept, because they were too large or too many waited. */
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
      await this.#options.append(taken);
    } catch (error) {
      this.#waiting.unshift(...taken);
      throw error;
    }
    for (const { record } of taken) this.#bytes -= record.length;
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

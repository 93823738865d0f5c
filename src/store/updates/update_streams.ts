/** Records which updates a stream has sent (decision 0069). */
import { storeLimits as limits } from '../limits.js';
import type { UpdateEntry } from './queues.js';

/** The client of a stream. */
export interface UpdateSink {
  /** Sends an update. Returns its size in bytes. */
  send(update: UpdateEntry): Promise<number>;
  /** Returns true if the client has not yet accepted all sent data. Nothing more should be sent then. */
  isBlocked(): boolean;
  /** Resolves when the client has accepted everything, or has disconnected. */
  drained(): Promise<void>;
}

/** The unconfirmed updates of a stream that has no consumer name. Their number and size are limited. */
export class SentUpdates {
  readonly #limit: number;
  #lastSeen: number;
  #sent: Array<{ readonly id: number; readonly bytes: number }> = [];
  #bytes = 0;
  /** The last update that was sent or skipped. */
  last = 0;

  constructor({ limit, lastSeen }: { readonly limit: number; readonly lastSeen: number }) {
    this.#limit = limit;
    this.#lastSeen = lastSeen;
  }

  /** The number of updates that the stream may still send. The last of these updates may exceed the limit in bytes. */
  get room(): number {
    return this.#bytes >= limits.script_read_bytes_max ? 0 : Math.max(0, this.#limit - this.#sent.length);
  }

  isFull(): boolean {
    return this.room === 0;
  }

  canAdd(): boolean {
    return this.room > 0;
  }

  /** Returns whether the client already has an update. */
  has(id: number): boolean {
    return id <= this.#lastSeen;
  }

  add(id: number, bytes: number): void {
    this.#sent.push({ id, bytes });
    this.#bytes += bytes;
    this.last = id;
  }

  /**
   * Takes the state of the queue. `oldest` is the id of the oldest pending update, or 0 if there is none. `latest` is
   * the id of the bot's newest update.
   */
  learn(oldest: number, latest: number): void {
    // Ignores the last update id that the client reported if no update has this id yet. The stream then starts at the
    // oldest update.
    if (this.#lastSeen > latest) this.#lastSeen = 0;
    if (oldest > 0 && oldest <= (this.#sent[0]?.id ?? oldest)) return;
    this.#sent = this.#sent.filter(({ id }) => oldest > 0 && id >= oldest);
    this.#bytes = this.#sent.reduce((sum, { bytes }) => sum + bytes, 0);
  }
}

/** The unconfirmed updates of a stream that has a consumer name. Redis stores their list and limits its size. */
export class SharedUpdates {
  #isFull = false;
  #held = 0;
  #confirmedAt: number;
  last: number;

  constructor({ lastSeen }: { readonly lastSeen: number }, now: number) {
    this.last = lastSeen;
    this.#confirmedAt = now;
  }

  isFull(): boolean {
    return this.#isFull;
  }

  /** Always returns true, because a script returns only as many updates as the stream may send. */
  canAdd(): boolean {
    return true;
  }

  /** Always returns false, because a script returns no update that the client already has. */
  has(): boolean {
    return false;
  }

  add(id: number): void {
    this.last = id;
  }

  /**
   * Takes the result of a step. `held` is the number of unconfirmed updates, and `added` is how many of them are new.
   * `now` is the monotonic time in ms.
   */
  learn(held: number, added: number, isFull: boolean, now: number): void {
    if (held === 0 || this.#held === 0 || held < this.#held + added) this.#confirmedAt = now;
    this.#held = held;
    this.#isFull = isFull;
  }

  /** Returns true if the client has confirmed nothing for so long that it has probably disappeared without notice. */
  isStalled(now: number): boolean {
    return now - this.#confirmedAt > limits.stream_confirm_ms_max;
  }
}

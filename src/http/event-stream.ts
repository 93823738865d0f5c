/** Sends server-sent events over one engine reply. Limits how much data waits for a slow client. */

import type { EventStream, StreamForm } from '../server/request.js';
import type { Time } from '../time.js';
import type { EngineResponse } from './engine.js';
import { httpLimits as limits } from './limits.js';

/**
 * Writes text directly to the kernel while the kernel accepts everything. Otherwise the engine keeps the rest of that
 * write, and later text waits here until the engine's buffer is empty. The engine disconnects a client that accepts
 * nothing for 10 s. Each text must consist of whole events or lines, because a filler may be sent between two texts.
 */
export class ReplyStream implements EventStream {
  private readonly time: Time;
  private readonly response: EngineResponse;
  private readonly ended: () => void;
  private readonly form: StreamForm;
  private waiting: Array<() => void> = [];
  private queue: string[] = [];
  private queuedBytes = 0;
  /** An upper bound for the bytes buffered in the engine, or 0 when the kernel accepted everything. */
  private heldBytes = 0;
  private open = true;
  private abandoned = false;

  /** Calls `ended` once, when `close` has ended the reply. */
  constructor(time: Time, response: EngineResponse, form: StreamForm, ended: () => void) {
    this.time = time;
    this.response = response;
    this.form = form;
    this.ended = ended;
    response.onWritable(() => this.resume());
  }

  write(text: string): boolean {
    if (!this.open) return false;
    if (text === '') return true;
    const bytes = Buffer.byteLength(text);
    if (this.heldBytes + this.queuedBytes + bytes > limits.stream_buffer_bytes_max) return false;
    if (this.heldBytes > 0) {
      this.queue.push(text);
      this.queuedBytes += bytes;
    } else {
      this.response.cork(() => this.send(text, bytes));
    }
    return true;
  }

  isBlocked(): boolean {
    return this.open && this.heldBytes > 0;
  }

  drained(): Promise<void> {
    if (!this.open || this.heldBytes === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  break(): void {
    if (!this.open) return;
    this.open = false;
    this.takeQueue();
    this.release();
    this.time.soon(() => {
      if (!this.abandoned) this.response.close();
    });
  }

  /**
   * Ends the stream in the next turn of the event loop, never inside the parser. Does not use the engine's option to
   * close the connection, because the engine would write a `Connection` header into the body.
   */
  close(): void {
    if (!this.open) return;
    this.open = false;
    this.release();
    this.time.soon(() => {
      if (this.abandoned) return;
      const rest = this.takeQueue();
      this.response.cork(() => {
        if (rest !== '') this.response.write(rest);
        this.response.end();
      });
      this.ended();
    });
  }

  /** Gives up the reply after the client has disconnected. The reply must not be used afterwards. */
  abandon(): void {
    this.open = false;
    this.abandoned = true;
    this.takeQueue();
    this.release();
  }

  private send(text: string, bytes: number): boolean {
    const taken = this.response.write(text);
    this.heldBytes = taken ? 0 : this.heldBytes + bytes;
    return taken;
  }

  /**
   * Sends the filler to make the engine flush. While a listener is set, the engine flushes its buffer only during a
   * write.
   */
  private resume(): boolean {
    if (!this.open || this.heldBytes === 0) return true;
    if (this.send(this.form.filler, this.form.filler.length) && this.queue.length > 0) {
      const bytes = this.queuedBytes;
      this.send(this.takeQueue(), bytes);
    }
    if (this.heldBytes === 0) this.release();
    return true;
  }

  private release(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }

  private takeQueue(): string {
    const text = this.queue.join('');
    this.queue = [];
    this.queuedBytes = 0;
    return text;
  }
}

export const closedStream: EventStream = {
  write: () => false,
  isBlocked: () => false,
  drained: () => Promise.resolve(),
  close: () => undefined,
  break: () => undefined,
};

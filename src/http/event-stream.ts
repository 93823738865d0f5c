/** A server-sent event stream over one reply of the engine, with a bound on what may wait for a slow reader. */

import { limits } from '../limits.js';
import type { EventStream, StreamForm } from '../server/request.js';
import type { EngineResponse } from './engine.js';

/**
 * While the kernel takes everything, text goes straight out. Once it does not, the engine holds the rest of that one
 * write, and later text queues here until the engine has got rid of it. A reader that takes nothing for 10 s is
 * disconnected by the engine. Each text must be whole events or lines, since a filler may go out between two of them.
 */
export class ReplyStream implements EventStream {
  private readonly response: EngineResponse;
  private readonly ended: () => void;
  private readonly form: StreamForm;
  private waiting: Array<() => void> = [];
  private queue: string[] = [];
  private queuedBytes = 0;
  /** Upper bound of what the engine holds; 0 when the kernel has taken everything. */
  private heldBytes = 0;
  private open = true;
  private abandoned = false;

  /** `ended` is called once, when `close` has ended the reply. */
  constructor(response: EngineResponse, form: StreamForm, ended: () => void) {
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

  drained(): Promise<void> {
    if (!this.open || this.heldBytes === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  break(): void {
    if (!this.open) return;
    this.open = false;
    this.takeQueue();
    this.release();
    setImmediate(() => {
      if (!this.abandoned) this.response.close();
    });
  }

  /**
   * Ends on the next turn of the event loop: like every reply that ends its connection, never inside the parser. The connection is
   * not asked to end with it: the engine would write that header into the body, and a balancer would take the stream for broken.
   */
  close(): void {
    if (!this.open) return;
    this.open = false;
    this.release();
    setImmediate(() => {
      if (this.abandoned) return;
      const rest = this.takeQueue();
      this.response.cork(() => {
        if (rest !== '') this.response.write(rest);
        this.response.end();
      });
      this.ended();
    });
  }

  /** The client has gone: the reply must not be touched any more. */
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

  /** With a listener of ours the engine drains what it holds only as part of a write, hence the filler. */
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

/** The stream of a client that is no longer there, or asked for the head alone. */
export const closedStream: EventStream = {
  write: () => false,
  drained: () => Promise.resolve(),
  close: () => undefined,
  break: () => undefined,
};

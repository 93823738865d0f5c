/** Sends server-sent events over one reply of the engine. Limits how much data waits for a slow client. */

import type { EventStream, StreamForm } from '../server/request.js';
import type { Timer } from '../time.js';
import type { EngineResponse } from './engine.js';
import type { ExchangeContext } from './exchange_context.js';
import { httpLimits as limits } from './limits.js';

/**
 * Passes text to the kernel as long as the kernel accepts all of it. Otherwise the engine keeps the rest of that write,
 * and later text waits here until the engine's buffer is empty. The engine disconnects a client that accepts nothing
 * for 10 s. At the end of a stream, the client has 2 s to accept the buffered text. Each text must consist of whole
 * events or lines, because a filler may be sent between two texts.
 */
export class ReplyStream implements EventStream {
  private readonly context: Pick<ExchangeContext, 'time' | 'streamBytes'>;
  private readonly response: EngineResponse;
  private readonly ended: () => void;
  private readonly form: StreamForm;
  private waiting: Array<() => void> = [];
  private queue: string[] = [];
  private queuedBytes = 0;
  /** An upper bound for the bytes that the engine buffers, or 0 when the kernel has accepted everything. */
  private heldBytes = 0;
  /** How many bytes of this stream are counted in the total of all streams. */
  private countedBytes = 0;
  private open = true;
  private abandoned = false;
  /** The timer of an ending stream. It disconnects a client that does not accept the buffered text in time. */
  private ending: Timer | undefined;

  /** `ended` is called once, after `close` has ended the reply. */
  constructor(
    context: Pick<ExchangeContext, 'time' | 'streamBytes'>,
    response: EngineResponse,
    form: StreamForm,
    ended: () => void,
  ) {
    this.context = context;
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
    this.count();
    return this.heldBytes === 0 || this.context.streamBytes <= limits.streams_buffer_bytes_max;
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
    this.context.time.soon(() => {
      if (!this.abandoned) this.response.close();
    });
  }

  /**
   * Ends the stream in the next turn of the event loop, never inside the engine's parser. Does not use the engine's
   * option to close the connection, because the engine would write a `Connection` header into the body. If the client
   * does not accept the buffered text in time, closes the connection. Otherwise clients that read very slowly could
   * keep the buffers of any number of ended streams in memory.
   */
  close(): void {
    if (!this.open) return;
    this.open = false;
    this.release();
    const { time } = this.context;
    if (this.heldBytes === 0) time.soon(() => this.end());
    else
      this.ending = time.after(limits.stream_end_ms_max, () => {
        if (!this.abandoned) this.response.close();
      });
  }

  private end(): void {
    if (this.abandoned) return;
    this.response.cork(() => this.response.end());
    this.ended();
  }

  /** Gives up the reply after the client has disconnected. The reply must not be used afterwards. */
  abandon(): void {
    this.open = false;
    this.abandoned = true;
    this.context.time.cancel(this.ending);
    this.takeQueue();
    this.heldBytes = 0;
    this.count();
    this.release();
  }

  private count(): void {
    const bytes = this.heldBytes + this.queuedBytes;
    this.context.streamBytes += bytes - this.countedBytes;
    this.countedBytes = bytes;
  }

  private send(text: string, bytes: number): boolean {
    const taken = this.response.write(text);
    this.heldBytes = taken ? 0 : this.heldBytes + bytes;
    return taken;
  }

  /**
   * Writes a filler (text that clients ignore) and then the queued text. The filler is needed because the engine
   * flushes its buffer only during a write, and only while a listener is set.
   */
  private resume(): boolean {
    if ((!this.open && this.ending === undefined) || this.heldBytes === 0) return true;
    if (this.send(this.form.filler, this.form.filler.length) && this.queue.length > 0) {
      const bytes = this.queuedBytes;
      this.send(this.takeQueue(), bytes);
    }
    this.count();
    if (this.heldBytes > 0) return true;
    this.release();
    if (this.ending !== undefined) {
      this.context.time.cancel(this.ending);
      this.ending = undefined;
      this.context.time.soon(() => this.end());
    }
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

/** Sends a stream as a reply of known length, no faster than the client reads. */
import type { Readable } from 'node:stream';
import type { Time } from '../time.js';
import type { EngineResponse } from './engine.js';

export interface StreamOwner {
  /** Writes status and headers. Called once, inside `cork`, right before the first byte. */
  readonly head: () => void;
  readonly done: () => void;
  /** Called when the stream failed before its first byte, so that the owner can still send an error answer. */
  readonly failed: (error: unknown) => void;
  /**
   * Called when the stream failed or ended early after its first byte. The connection is then closed, because it is too
   * late for an error answer.
   */
  readonly broken: (error: unknown) => void;
}

/**
 * Passes at most one chunk to the engine at a time. If the kernel accepts only a part, the rest waits here and the
 * source is paused. A slow client thus uses memory for one chunk and for what the source has read ahead.
 */
export class StreamReply {
  private readonly time: Time;
  private readonly response: EngineResponse;
  private readonly source: Readable;
  private readonly length: number;
  private readonly owner: StreamOwner;
  private begun = false;
  private over = false;
  /** The bytes that the kernel has not accepted yet, and the position in the reply at which these bytes begin. */
  private pending: Buffer | undefined;
  private pendingAt = 0;

  /** `length` must be above 0, and `source` must provide exactly that many bytes. */
  constructor(time: Time, response: EngineResponse, source: Readable, length: number, owner: StreamOwner) {
    this.time = time;
    this.response = response;
    this.source = source;
    this.length = length;
    this.owner = owner;
    source.on('readable', () => this.pump());
    source.on('end', () => this.fail(new Error('the file is shorter than announced')));
    source.on('error', (error) => this.fail(error));
  }

  /** Gives up the reply after the client has disconnected. The reply must not be used afterwards. */
  abandon(): void {
    if (this.over) return;
    this.over = true;
    this.pending = undefined;
    this.source.destroy();
  }

  private pump(): void {
    while (!this.over && this.pending === undefined) {
      const chunk = this.source.read() as Buffer | null;
      if (chunk === null) return;
      this.response.cork(() => this.send(chunk));
    }
  }

  private send(chunk: Buffer): void {
    if (!this.begun) this.begin();
    const at = this.response.getWriteOffset();
    const [taken, complete] = this.response.tryEnd(chunk, this.length);
    if (complete) this.finish();
    else if (!taken) {
      this.pending = chunk;
      this.pendingAt = at;
    }
  }

  private begin(): void {
    this.begun = true;
    this.owner.head();
    this.response.onWritable((offset) => this.resume(offset));
  }

  private resume(offset: number): boolean {
    if (this.over || this.pending === undefined) return true;
    const rest = this.pending.subarray(offset - this.pendingAt);
    const [taken, complete] = this.response.tryEnd(rest, this.length);
    if (complete) this.finish();
    else if (taken) {
      this.pending = undefined;
      // Continues outside the engine's callback, so that the next chunk is sent inside `cork` like all other chunks.
      this.time.soon(() => this.pump());
    }
    return taken;
  }

  private finish(): void {
    this.over = true;
    this.pending = undefined;
    this.source.destroy();
    this.owner.done();
  }

  private fail(error: unknown): void {
    if (this.over) return;
    this.over = true;
    this.pending = undefined;
    this.source.destroy();
    if (!this.begun) {
      this.owner.failed(error);
      return;
    }
    // Closes the connection, because it is too late for an error answer.
    this.owner.broken(error);
    this.response.close();
  }
}

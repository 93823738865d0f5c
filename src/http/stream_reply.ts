/** Sends a stream as a reply of known length, no faster than the client reads. */
import type { Readable } from 'node:stream';
import type { EngineResponse } from './engine.js';

export interface StreamOwner {
  /** Writes status and headers. Called once, corked, right before the first byte. */
  readonly head: () => void;
  /** The kernel has the last byte. */
  readonly done: () => void;
  /** The stream failed before its first byte, so an error can still be sent. */
  readonly failed: (error: unknown) => void;
  /** The stream failed or ended early after the first byte. The connection was closed. */
  readonly broken: (error: unknown) => void;
}

/**
 * Hands at most one chunk to the engine. The part the kernel did not accept waits here, and the source is paused
 * meanwhile. A slow reader costs one chunk plus the read-ahead of the source.
 */
export class StreamReply {
  private readonly response: EngineResponse;
  private readonly source: Readable;
  private readonly length: number;
  private readonly owner: StreamOwner;
  private begun = false;
  private over = false;
  /** Bytes the kernel has not accepted yet, and their offset in the reply. */
  private pending: Buffer | undefined;
  private pendingAt = 0;

  /** `length` is above 0, and `source` yields exactly that many bytes. */
  constructor(response: EngineResponse, source: Readable, length: number, owner: StreamOwner) {
    this.response = response;
    this.source = source;
    this.length = length;
    this.owner = owner;
    source.on('readable', () => this.pump());
    source.on('end', () => this.fail(new Error('the file is shorter than announced')));
    source.on('error', (error) => this.fail(error));
  }

  /** The client has disconnected. The reply must not be used any more. */
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
      // Runs outside the engine's callback, so that the next chunk is corked like every other.
      setImmediate(() => this.pump());
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
    // An error answer is no longer possible. Closing the connection tells the client.
    this.owner.broken(error);
    this.response.close();
  }
}

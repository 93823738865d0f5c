/** Sends the bytes of a stream as a reply of known length, no faster than the client takes them. */
import type { Readable } from 'node:stream';
import type { EngineResponse } from './engine.js';

export interface StreamOwner {
  /** Writes status and headers; called once, corked, right before the first byte. */
  readonly head: () => void;
  /** The last byte is with the kernel. */
  readonly done: () => void;
  /** The stream broke before its first byte: the reply is still to be given. */
  readonly failed: (error: unknown) => void;
  /** The stream broke or ended short inside the reply: the connection was closed. */
  readonly broken: (error: unknown) => void;
}

/**
 * One chunk is with the engine at most. What the kernel does not take of it stays here until the engine asks for it, and
 * the source is read no further meanwhile: a slow reader costs one chunk and what the source reads ahead.
 */
export class StreamReply {
  private readonly response: EngineResponse;
  private readonly source: Readable;
  private readonly length: number;
  private readonly owner: StreamOwner;
  private begun = false;
  private over = false;
  /** Not yet taken by the kernel, and where in the reply it starts. */
  private pending: Buffer | undefined;
  private pendingAt = 0;

  /** `length` is above 0, and all that `source` brings. */
  constructor(response: EngineResponse, source: Readable, length: number, owner: StreamOwner) {
    this.response = response;
    this.source = source;
    this.length = length;
    this.owner = owner;
    source.on('readable', () => this.pump());
    source.on('end', () => this.fail(new Error('a file is shorter than it was')));
    source.on('error', (error) => this.fail(error));
  }

  /** The client has gone: the reply must not be touched any more. */
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
      // Outside of the engine's callback: the next chunk is corked like every other.
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
    // Too late for an answer: only a connection that ends early tells the client.
    this.owner.broken(error);
    this.response.close();
  }
}

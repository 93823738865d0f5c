/**
 * Limits the memory for large replies that their clients have not read completely. Otherwise the clients of one account
 * could open many connections, read slowly, and use up the memory of a front.
 */
import { httpLimits as limits } from './limits.js';

/** A bot, a person, or the address of a caller without an account. */
type Caller = number | string;

export interface HeldReply {
  readonly bytes: number;
  /** Closes the connection of this reply. */
  readonly drop: () => void;
}

interface Held {
  bytes: number;
  /** The oldest reply comes first. */
  readonly replies: Set<HeldReply>;
}

export class HeldReplies {
  #bytes = 0;
  readonly #callers = new Map<Caller, Held>();

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts a reply. While the replies of its caller are above `caller_held_replies_bytes_max`, drops the oldest reply of
   * this caller. While all replies are above `held_replies_bytes_max`, drops the oldest reply of the caller with the most
   * bytes.
   */
  add(caller: Caller, reply: HeldReply): void {
    const held = this.#callers.get(caller) ?? { bytes: 0, replies: new Set() };
    this.#callers.set(caller, held);
    held.replies.add(reply);
    held.bytes += reply.bytes;
    this.#bytes += reply.bytes;
    while (held.bytes > limits.caller_held_replies_bytes_max) this.#dropOldest(caller, held);
    while (this.#bytes > limits.held_replies_bytes_max) {
      const [largest] = [...this.#callers].sort(([, a], [, b]) => b.bytes - a.bytes);
      if (largest === undefined) return;
      this.#dropOldest(...largest);
    }
  }

  /** Returns whether the replies of the caller stay within their limit with further bytes. */
  fits(caller: Caller, bytes: number): boolean {
    return (this.#callers.get(caller)?.bytes ?? 0) + bytes <= limits.caller_held_replies_bytes_max;
  }

  remove(caller: Caller, reply: HeldReply): void {
    const held = this.#callers.get(caller);
    if (!held?.replies.delete(reply)) return;
    held.bytes -= reply.bytes;
    this.#bytes -= reply.bytes;
    if (held.replies.size === 0) this.#callers.delete(caller);
  }

  #dropOldest(caller: Caller, { replies }: Held): void {
    const [oldest] = replies as Iterable<HeldReply>;
    if (oldest === undefined) return;
    this.remove(caller, oldest);
    oldest.drop();
  }
}

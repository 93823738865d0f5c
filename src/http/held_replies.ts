/**
 * Limits the memory for large replies that clients have not read completely. Otherwise the clients of one account could
 * open many connections, read slowly, and use up a front's memory.
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
  /** The replies that can be dropped, oldest first. */
  readonly replies: Set<HeldReply>;
}

export class HeldReplies {
  #bytes = 0;
  readonly #callers = new Map<Caller, Held>();

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts a reply. If this caller's replies exceed `caller_held_replies_bytes_max`, drops the caller's oldest replies.
   * If all replies exceed `held_replies_bytes_max`, drops the oldest replies of the caller with the most bytes.
   */
  add(caller: Caller, reply: HeldReply): void {
    const held = this.#count(caller, reply.bytes);
    held.replies.add(reply);
    while (held.bytes > limits.caller_held_replies_bytes_max && this.#dropOldest(caller, held));
    while (this.#bytes > limits.held_replies_bytes_max) {
      const [largest] = [...this.#callers]
        .filter(([, { replies }]) => replies.size > 0)
        .sort(([, a], [, b]) => b.bytes - a.bytes);
      if (largest === undefined || !this.#dropOldest(...largest)) return;
    }
  }

  remove(caller: Caller, reply: HeldReply): void {
    const held = this.#callers.get(caller);
    if (held?.replies.delete(reply)) this.#count(caller, -reply.bytes);
  }

  /**
   * Counts a reply that cannot be dropped. Returns a function that removes the reply from the count. Returns null and
   * counts nothing if the reply exceeds the limit of its caller or of all callers.
   */
  hold(caller: Caller, bytes: number): (() => void) | null {
    const ofCaller = this.#callers.get(caller)?.bytes ?? 0;
    if (ofCaller + bytes > limits.caller_held_replies_bytes_max) return null;
    if (this.#bytes + bytes > limits.held_replies_bytes_max) return null;
    this.#count(caller, bytes);
    return () => void this.#count(caller, -bytes);
  }

  #count(caller: Caller, bytes: number): Held {
    const held = this.#callers.get(caller) ?? { bytes: 0, replies: new Set() };
    held.bytes += bytes;
    this.#bytes += bytes;
    if (held.bytes > 0) this.#callers.set(caller, held);
    else this.#callers.delete(caller);
    return held;
  }

  #dropOldest(caller: Caller, { replies }: Held): boolean {
    const [oldest] = replies as Iterable<HeldReply>;
    if (oldest === undefined) return false;
    this.remove(caller, oldest);
    oldest.drop();
    return true;
  }
}

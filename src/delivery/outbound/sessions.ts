/**
 * Keeps the TLS sessions of receivers for some minutes. A resumed session takes two thirds of the time of a full
 * handshake, but does not verify the certificate again. Only the server that was verified can resume a session, so a
 * resumed connection is as safe as a connection that was never closed.
 */
import type { Time } from '../../time.js';
import { deliveryLimits as limits } from '../limits.js';

interface Kept {
  readonly session: Buffer;
  /** The monotonic time in ms at which the session may no longer be resumed. */
  readonly endMs: number;
}

/**
 * Keeps at most `webhook_sessions_max` sessions of up to `webhook_session_bytes_max` bytes each. Removes the oldest
 * session first.
 */
export class TlsSessions {
  readonly #time: Time;
  readonly #ms: number;
  readonly #kept = new Map<string, Kept>();

  /** `ms` is how long a session may be resumed after the handshake that verified the certificate. */
  constructor(time: Time, ms: number) {
    this.#time = time;
    this.#ms = ms;
  }

  get count(): number {
    return this.#kept.size;
  }

  /**
   * Returns the time at which a session ends (monotonic clock). The certificate was just verified and expires at
   * `validTo`.
   */
  endOf(validTo: string): number {
    // Uses the machine's clock, because OpenSSL checks the validity of certificates with this clock.
    const validMs = Date.parse(validTo) - this.#time.machine();
    return this.#time.monotonic() + (Number.isNaN(validMs) ? 0 : Math.min(this.#ms, validMs));
  }

  /** Returns the session to resume. Undefined means that a full handshake is needed. */
  find(key: string): Buffer | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined || kept.endMs > this.#time.monotonic()) return kept?.session;
    this.#kept.delete(key);
    return undefined;
  }

  /** Keeps a session until `endMs` (monotonic clock). Does not keep a session that is too large. */
  keep(key: string, session: Buffer, endMs: number): void {
    this.#kept.delete(key);
    if (session.length > limits.webhook_session_bytes_max || endMs <= this.#time.monotonic()) return;
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= limits.webhook_sessions_max) this.#kept.delete(oldest);
    this.#kept.set(key, { session, endMs });
  }

  drop(key: string): void {
    this.#kept.delete(key);
  }
}

/** Reads one HTTP answer from a receiver, with limits on time and size. */

import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Time, Timer } from '../../time.js';
import { deliveryLimits as limits } from '../limits.js';
import type { Outcome } from '../outcome.js';
import { httpDateMs, readRetryAfter } from '../schedule.js';
import { connectionFault, DeliveryFault, notHttp } from './faults.js';

const first = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);

function retryAfterOf(headers: IncomingHttpHeaders, time: Time): number | undefined {
  const asked = first(headers['retry-after']);
  if (asked === undefined) return undefined;
  return readRetryAfter(asked, httpDateMs(first(headers.date) ?? '') ?? time.now());
}

class UnsentError extends Error {}

const unsent = { reason: 'closed', message: 'Given up before the request was sent' } as const;

/**
 * Handles one request for undici. Settles exactly once: when the answer is complete or too large, when the connection
 * breaks, or at the deadline. Later events are ignored.
 */
export class Answer implements Dispatcher.DispatchHandler {
  readonly #settle: (outcome: Outcome) => void;
  readonly #addressOf: () => string;
  /** Called once, when no more data is expected. `complete` is true if the connection can be reused. */
  onEnd: (complete: boolean) => void = () => {};
  readonly #time: Time;
  readonly #beganMs: number;
  readonly #deadline: Timer;
  readonly #maySend: () => boolean;
  readonly #chunks: Buffer[] = [];
  readonly #bytesMax: number;
  #started = false;
  #settled = false;
  #interim = 0;
  #bytes = 0;
  #status: number | undefined;
  #retryAfterMs: number | undefined;

  /**
   * Calls `maySend` directly before the request is written. If `maySend` returns false, the request fails and is not
   * written. Reads at most `bytesMax` bytes of the body.
   */
  constructor(
    time: Time,
    deadlineMs: number,
    addressOf: () => string,
    maySend: () => boolean,
    settle: (outcome: Outcome) => void,
    bytesMax: number = limits.webhook_answer_bytes_max,
  ) {
    this.#bytesMax = bytesMax;
    this.#time = time;
    this.#maySend = maySend;
    this.#beganMs = time.monotonic();
    this.#settle = settle;
    this.#addressOf = addressOf;
    this.#deadline = time.after(deadlineMs, () => this.#late());
  }

  get ageMs(): number {
    return this.#time.monotonic() - this.#beganMs;
  }

  giveUp(): void {
    this.#fail(new DeliveryFault('closed', 'Given up before there was an answer'));
  }

  onRequestStart(): void {
    // If this method throws, undici does not send the request, and the next request can use the connection.
    if (!this.#maySend()) throw new UnsentError();
    this.#started = true;
  }

  onResponseStart(_: unknown, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) {
      this.#interim += 1;
      if (this.#interim > limits.webhook_interim_answers_max) this.#fail(new DeliveryFault(...notHttp));
      return;
    }
    this.#status = status;
    this.#retryAfterMs = retryAfterOf(headers, this.#time);
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    const room = this.#bytesMax - this.#bytes;
    this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#bytes += Math.min(chunk.length, room);
    if (chunk.length > room) this.#answer(true);
  }

  onResponseEnd(): void {
    this.#answer(false);
  }

  /** Settles the request with the part of the body that has been read so far, and closes the connection. */
  protected stop(): void {
    this.#answer(true);
  }

  onResponseError(_: unknown, error: Error): void {
    if (error instanceof UnsentError) this.#end(this.#failed(unsent), true);
    else this.#fail(connectionFault(error, ['closed', 'Connection closed before the answer was complete']));
  }

  #late(): void {
    const fault = !this.#started
      ? new DeliveryFault('connect', 'Connection timed out')
      : new DeliveryFault('timeout', 'Read timeout expired');
    this.#fail(fault);
  }

  /**
   * Settles a request whose answer is incomplete. If the status is an error status, the incomplete answer counts as an
   * answer. Otherwise the request counts as failed.
   */
  #fail({ reason, message }: DeliveryFault): void {
    if (this.#status !== undefined && (this.#status < 200 || this.#status > 299)) this.#answer(true);
    else this.#end(this.#failed({ reason, message }), false);
  }

  #failed({ reason, message }: Pick<DeliveryFault, 'reason' | 'message'>): Outcome {
    return { kind: 'failed', reason, message, latencyMs: this.#latencyMs() };
  }

  #answer(truncated: boolean): void {
    const outcome = {
      kind: 'answered',
      status: this.#status ?? 0,
      retryAfterMs: this.#retryAfterMs,
      body: Buffer.concat(this.#chunks),
      truncated,
      latencyMs: this.#latencyMs(),
      address: this.#addressOf(),
    } as const;
    this.#end(outcome, !truncated);
  }

  #end(outcome: Outcome, complete: boolean): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#time.cancel(this.#deadline);
    this.#chunks.length = 0;
    this.onEnd(complete);
    this.#settle(outcome);
  }

  #latencyMs(): number {
    return Math.round(this.ageMs);
  }
}

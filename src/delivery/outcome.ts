/** Describes the outcome of one delivery attempt. */
import { STATUS_CODES } from 'node:http';
import type { FaultReason } from './outbound/faults.js';

export interface Answered {
  readonly kind: 'answered';
  readonly status: number;
  /** The wait in ms that the header `Retry-After` asks for, up to a limit. */
  readonly retryAfterMs: number | undefined;
  /** The body as received, up to 64 KiB. It is never decompressed. */
  readonly body: Buffer;
  /**
   * Whether the body is incomplete. A body is incomplete if it was longer than 64 KiB, or if the connection broke after
   * an error status.
   */
  readonly truncated: boolean;
  readonly latencyMs: number;
  readonly address: string;
}

export interface Failed {
  readonly kind: 'failed';
  readonly reason: FaultReason;
  readonly message: string;
  readonly latencyMs: number;
}

export type Outcome = Answered | Failed;

/** Returns whether the update counts as delivered, which requires an answer with a 2xx status (behaviour §10). */
export const isDelivered = (outcome: Outcome): outcome is Answered =>
  outcome.kind === 'answered' && outcome.status >= 200 && outcome.status <= 299;

/** Returns the `last_error_message` for a failed delivery. The text contains nothing from the receiver. */
export function errorMessageOf(outcome: Outcome): string {
  if (outcome.kind === 'failed') return outcome.message;
  const phrase = STATUS_CODES[outcome.status];
  return `Wrong response from the webhook: ${outcome.status}${phrase === undefined ? '' : ` ${phrase}`}`;
}

/** What became of one attempt to deliver. */
import { STATUS_CODES } from 'node:http';
import type { FaultReason } from './outbound/faults.js';

/** The receiver answered; whatever it says counts as its answer. */
export interface Answered {
  readonly kind: 'answered';
  readonly status: number;
  /** what `Retry-After` asks for, in milliseconds from the answer, bounded */
  readonly retryAfterMs: number | undefined;
  /** at most 64 KiB, as sent: never decompressed */
  readonly body: Buffer;
  /** the answer was longer, or broke off after a status that is no success */
  readonly truncated: boolean;
  readonly latencyMs: number;
  /** the address that was last dialled for this receiver */
  readonly address: string;
}

/** There was no answer. */
export interface Failed {
  readonly kind: 'failed';
  readonly reason: FaultReason;
  readonly message: string;
  readonly latencyMs: number;
}

export type Outcome = Answered | Failed;

/** A delivery counts when the receiver answers with a 2xx (behaviour §10). */
export const isDelivered = (outcome: Outcome): outcome is Answered =>
  outcome.kind === 'answered' && outcome.status >= 200 && outcome.status <= 299;

/** `last_error_message` of an outcome that is no delivery. The receiver's own words are not repeated. */
export function errorMessageOf(outcome: Outcome): string {
  if (outcome.kind === 'failed') return outcome.message;
  const phrase = STATUS_CODES[outcome.status];
  return `Wrong response from the webhook: ${outcome.status}${phrase === undefined ? '' : ` ${phrase}`}`;
}

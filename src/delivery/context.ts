/** Defines what a delivery needs, and the callbacks that report its progress. */

import type { Random } from '../random.js';
import type { Store } from '../store/store.js';
import type { DeadReason, Delivery } from '../store/webhooks/deliveries.js';
import type { Time } from '../time.js';
import type { HeldBytes } from './held_bytes.js';
import type { Receiver } from './outbound/send.js';
import type { Headers, SignerOptions } from './outbound/sign.js';
import type { Answered, Outcome } from './outcome.js';
import type { Slots } from './slots.js';

/**
 * Sends a body once. An aborted request counts as a failure. The implementation must call `maySend` directly before it
 * writes the request. If `maySend` returns false, nothing is written, and the outcome is ignored.
 */
export type Send = (
  receiver: Receiver,
  headers: Headers,
  body: Buffer,
  signal: AbortSignal,
  maySend: () => boolean,
) => Promise<Outcome>;

export interface DrainContext {
  readonly store: Pick<Store, 'deliveries' | 'webhooks' | 'auth'>;
  readonly send: Send;
  readonly slots: Slots;
  readonly heldBytes: HeldBytes;
  /**
   * Returns the function that handles a bot's updates inside this process instead of sending them. Only the management
   * bot has such a function. The function rejects if the update must be retried.
   */
  inside?(bot: number): ((delivery: Delivery) => Promise<void>) | undefined;
  /** Returns whether a drain may keep its lease while it has no work. `owner` is the owner of the drain's bot. */
  mayStay(owner: number): boolean;
  readonly signer: SignerOptions;
  /** Returns the header `traceparent` of a delivery, or undefined if the delivery's trace is not kept. */
  traceparent?(bot: number, delivery: Delivery): string | undefined;
  readonly time: Time;
  readonly random: Random;
  /**
   * Called after every attempt, with the id of the queue. `dead` is the reason why a failed update will not be retried.
   * Null if the update was delivered or will be retried.
   */
  onOutcome?(
    queue: number,
    delivery: Delivery,
    outcome: Outcome | null,
    dead: DeadReason | null,
    attempt: AttemptFacts,
  ): void;
  /**
   * Calls the method that the receiver's answer contains. The chat's next update is sent only after this call. Must not
   * reject.
   */
  onAnswer?(bot: number, delivery: Delivery, answer: Answered): Promise<void> | undefined;
  /** Called with the id of the queue when its webhook was removed because the receiver answered 410 for 23 hours. */
  onRemoved?(queue: number): void;
  onError(error: unknown): void;
}

export interface AttemptFacts {
  /** The owner of the bot. The process divides its slots and its memory among owners. */
  readonly owner: number;
  /** The number of this attempt, counted from 1. */
  readonly tries: number;
  /** The time of the next attempt in ms, by the clock of Redis, or null if there is none. */
  readonly nextAtMs: number | null;
  readonly secrets: readonly string[];
  /** Whether this attempt belongs to a replay. */
  readonly isReplay?: boolean;
}

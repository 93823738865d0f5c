/** What deliveries work with, and who hears of them. */

import type { Store } from '../store/store.js';
import type { DeadReason, Delivery } from '../store/webhooks/deliveries.js';
import type { Receiver } from './outbound/send.js';
import type { Headers } from './outbound/sign.js';
import type { Answered, Outcome } from './outcome.js';
import type { Slots } from './slots.js';

/** Sends bytes once and tells what came of it; an abort counts as a failure. */
export type Send = (
  receiver: Receiver,
  headers: Headers,
  body: Buffer,
  signal: AbortSignal,
) => Promise<Outcome>;

export interface DrainContext {
  readonly store: Pick<Store, 'deliveries' | 'webhooks' | 'auth'>;
  readonly send: Send;
  readonly slots: Slots;
  /** Takes an update of a bot that has no receiver outside. Absent for all but the management bot; it rejects when the update
   * is to be tried again. */
  inside?(bot: number): ((delivery: Delivery) => Promise<void>) | undefined;
  /** Whether a drain may keep its bot for a while after the last update. */
  mayStay(): boolean;
  /** What stands for `Service` in the names of headers. */
  readonly service: string;
  /** Hears every attempt: `dead` is set when it was the update's last. */
  onOutcome?(
    bot: number,
    delivery: Delivery,
    outcome: Outcome | null,
    dead: DeadReason | null,
    attempt: AttemptFacts,
  ): void;
  /** Runs what an answer asks for before the chat's next update goes out. It must not reject. */
  onAnswer?(bot: number, delivery: Delivery, answer: Answered): Promise<void> | undefined;
  /** A webhook was removed because its receiver said for 23 hours that it is gone. */
  onRemoved?(bot: number): void;
  onError(error: unknown): void;
}

/** What is known of an attempt besides its outcome. */
export interface AttemptFacts {
  /** from 1 */
  readonly tries: number;
  /** ms, by Redis' clock; null when there is no next one */
  readonly nextAtMs: number | null;
  /** What must not be shown of the answer. */
  readonly secrets: readonly string[];
}

/** Computes when a failed delivery is retried, and when retries end (behaviour §10). Has no side effects. */
import type { RetryPolicy } from '../rules/retry_policy.js';
import { storeLimits } from '../store/limits.js';
import type { UpdateEntry } from '../store/updates/queues.js';
import { deliveryLimits as limits } from './limits.js';

/**
 * Returns the age in ms at which an update of this kind is no longer retried. For inline queries this age is short: an
 * old query can no longer be answered, and must not delay the person's messages.
 */
export const ageMaxOf = (kind: UpdateEntry['kind'], policy: RetryPolicy | null = null): number =>
  kind === 'inline_query'
    ? storeLimits.inline_query_age_ms_max
    : policy === null
      ? limits.webhook_retry_age_ms_max
      : policy.max_age * 1_000;

/** The delays of the first retries in ms, before jitter. All later delays are between one and two minutes. */
const stepsMs = [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000];
/**
 * Delays before this index have no jitter. The most common failures, a restart of the receiver and a closed connection,
 * are over within these delays.
 */
const jitterFrom = 2;

export interface Attempt {
  readonly failures: number;
  /** The Unix time in ms at which the update was created. */
  readonly madeAtMs: number;
  /** The age in ms at which retries of the update end (see `ageMaxOf`). The default is the age for most updates. */
  readonly ageMaxMs?: number;
  /** The current time, by the same clock as `madeAtMs`. */
  readonly nowMs: number;
  readonly retryAfterMs?: number | undefined;
  /** The retry policy of the webhook. Null (the default) means the usual schedule. */
  readonly policy?: RetryPolicy | null;
}

export type Next = { readonly kind: 'retry'; readonly atMs: number } | { readonly kind: 'dead' };

function delayMs(failures: number, policy: RetryPolicy | null, random: number): number {
  const step =
    policy === null
      ? stepsMs[failures - 1]
      : Math.min(
          policy.first_delay * 1_000 * policy.factor ** (failures - 1),
          limits.webhook_policy_delay_ms_max,
        );
  if (step === undefined) return 60_000 + random * (limits.webhook_retry_interval_ms_max - 60_000);
  return failures > jitterFrom ? step * (1 + random / 2) : step;
}

/**
 * Computes when to retry. `random` is in [0, 1). A `Retry-After` can only make the delay longer. The last retry happens
 * at the age at which retries end. If that retry fails, the update is not retried again.
 */
export function nextTry(
  {
    failures,
    madeAtMs,
    ageMaxMs = limits.webhook_retry_age_ms_max,
    nowMs,
    retryAfterMs = 0,
    policy = null,
  }: Attempt,
  random: number,
): Next {
  const endMs = madeAtMs + ageMaxMs;
  if (nowMs >= endMs) return { kind: 'dead' };
  const waitMs = delayMs(failures, policy, random);
  const askedMs = Math.min(retryAfterMs, limits.webhook_retry_after_ms_max);
  return { kind: 'retry', atMs: Math.min(endMs, Math.ceil(nowMs + Math.max(waitMs, askedMs))) };
}

/** Matches the three HTTP date formats (RFC 9110 §5.6.7). Of these, only the asctime format omits GMT. */
const dated = /^[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -](\d\d|\d{4}) \d\d:\d\d:\d\d GMT$/;
const undated = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

export function httpDateMs(text: string): number | undefined {
  const ms = dated.test(text)
    ? Date.parse(text)
    : undated.test(text)
      ? Date.parse(`${text} GMT`)
      : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/**
 * Returns how long a `Retry-After` header asks to wait: from 0 to an hour, in ms. Returns undefined if the header is
 * neither a number of seconds nor a date. A date is compared with `nowMs`: the receiver's `Date` header if present,
 * because clocks differ.
 */
export function readRetryAfter(text: string, nowMs: number): number | undefined {
  const value = text.trim();
  const dateMs = httpDateMs(value);
  const ms = /^\d{1,15}$/.test(value)
    ? Number(value) * 1_000
    : dateMs === undefined
      ? undefined
      : dateMs - nowMs;
  return ms === undefined ? undefined : Math.min(Math.max(ms, 0), limits.webhook_retry_after_ms_max);
}

/**
 * The Unix time in ms at which the webhook's present series of 410 answers began. Undefined if the last answer was not
 * 410.
 */
export type GoneSince = number | undefined;

/**
 * Returns the new state after an answer. `remove` is true if the receiver has answered only 410 for 23 hours. An answer
 * with another status ends the period of 410 answers. A failure without an answer (`status` undefined) changes nothing.
 */
export function afterAnswer(
  goneSinceMs: GoneSince,
  status: number | undefined,
  nowMs: number,
): { readonly goneSinceMs: GoneSince; readonly remove: boolean } {
  if (status === undefined) return { goneSinceMs, remove: false };
  if (status !== 410) return { goneSinceMs: undefined, remove: false };
  const since = goneSinceMs ?? nowMs;
  return { goneSinceMs: since, remove: nowMs - since >= limits.webhook_gone_ms };
}

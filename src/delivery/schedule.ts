/** When a delivery that failed is tried again, and when no more (behaviour §10). Pure. */
import { limits } from '../limits.js';

/** After the first failure at once, then doubling to a minute. */
const stepsMs = [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000];
/** The first two stay exact: most failures are a restart or a connection that had just been closed. */
const jitterFrom = 2;

export interface Attempt {
  /** failures of this update so far, this one counted, at least 1 */
  readonly failures: number;
  /** when the update was made, Unix milliseconds */
  readonly madeAtMs: number;
  /** the same clock as `madeAtMs` */
  readonly nowMs: number;
  readonly retryAfterMs?: number | undefined;
}

export type Next = { readonly kind: 'retry'; readonly atMs: number } | { readonly kind: 'dead' };

/**
 * When to try next. `random` is from 0 up to 1. What a receiver asks for with Retry-After only ever lengthens the wait. The
 * last try comes when the update is 24 hours old; after that it is dead.
 */
export function nextTry({ failures, madeAtMs, nowMs, retryAfterMs = 0 }: Attempt, random: number): Next {
  const endMs = madeAtMs + limits.webhook_retry_age_ms_max;
  if (nowMs >= endMs) return { kind: 'dead' };
  const step = stepsMs[failures - 1];
  const waitMs =
    step === undefined
      ? 60_000 + random * (limits.webhook_retry_interval_ms_max - 60_000)
      : failures > jitterFrom
        ? step * (1 + random / 2)
        : step;
  const askedMs = Math.min(retryAfterMs, limits.webhook_retry_after_ms_max);
  return { kind: 'retry', atMs: Math.min(endMs, Math.ceil(nowMs + Math.max(waitMs, askedMs))) };
}

/** The three forms of a date in HTTP (RFC 9110 §5.6.7); only the last one, of C, leaves out that it is in GMT. */
const dated = /^[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -](\d\d|\d{4}) \d\d:\d\d:\d\d GMT$/;
const undated = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/** A date of HTTP in Unix milliseconds, undefined if it is none. */
export function httpDateMs(text: string): number | undefined {
  const ms = dated.test(text)
    ? Date.parse(text)
    : undated.test(text)
      ? Date.parse(`${text} GMT`)
      : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/**
 * What a `Retry-After` asks for in milliseconds, from 0 to an hour; undefined if it is neither seconds nor a date. A date is
 * counted from `nowMs`, which should be the receiver's own `Date` where it gave one: clocks differ.
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

/** Since when a webhook has answered nothing but 410, Unix milliseconds; undefined while it has not. */
export type GoneSince = number | undefined;

/**
 * Follows answers of 410: `remove` once they have gone on for 23 hours. Any other answer ends the run; a failure to reach the
 * receiver (`status` undefined) says nothing of it and leaves it as it is.
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

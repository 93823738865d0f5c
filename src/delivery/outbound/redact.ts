/** Truncates a receiver's answer and masks secrets in it, for storage and display (law 7). */

import { ruleLimits } from '../../rules/limits.js';
import { deliveryLimits as limits } from '../limits.js';

/** The length of the longest secret: a URL with every slash escaped. */
const secretLengthMax = 2 * limits.webhook_url_length_max;

/**
 * Copies only as many bytes from the beginning of an answer as `shownAnswer` needs to show `bytesMax` bytes. The whole
 * answer may have 64 KiB.
 */
export const beginningOf = (body: Buffer, bytesMax: number = ruleLimits.delivery_answer_kept_bytes): Buffer =>
  Buffer.from(body.subarray(0, bytesMax + secretLengthMax));

/** Matches tokens of bots and people, in plain or URL-encoded form. */
const tokens = /(\d{1,13}(?::|%3[Aa]))([AU][\w-]{34})/g;
const signingSecrets = /whsec_[A-Za-z0-9+/=]{16,}/g;

const stars = (text: string) => '*'.repeat(text.length);

/** Returns the forms in which a receiver's answer may contain the text: unchanged, or escaped in JSON. */
const forms = (secret: string) => new Set([secret, secret.replaceAll('/', '\\/')]);

function secretParts(secrets: readonly string[]): string[] {
  const parts = secrets.flatMap((secret) => {
    if (!URL.canParse(secret)) return [secret];
    // Only the part of the URL after the host is secret.
    const { pathname, search } = new URL(secret);
    return [secret, `${pathname}${search}`, pathname].filter((part) => part.length > 8);
  });
  return parts.flatMap((part) => [...forms(part)]).filter((part) => part !== '');
}

/**
 * Returns the first `bytesMax` bytes of an answer as text, given the result of `beginningOf`. Replaces each token and
 * secret with as many stars as it has characters, so that no later text moves into the first `bytesMax` bytes.
 */
export function shownAnswer(
  beginning: Buffer,
  secrets: readonly string[],
  bytesMax: number = ruleLimits.delivery_answer_kept_bytes,
): string {
  if (beginning.length === 0) return '';
  // Replaces U+0000, because Postgres cannot store it.
  let text = beginning.toString('utf8').replaceAll('\u0000', '\ufffd');
  // Masks longer secrets first, because one secret may contain another.
  for (const part of secretParts(secrets).sort((a, b) => b.length - a.length)) {
    if (text.includes(part)) text = text.replaceAll(part, stars(part));
  }
  text = text
    .replace(tokens, (_, id: string, secret: string) => id + stars(secret))
    .replace(signingSecrets, stars);
  const bytes = Buffer.from(text);
  if (bytes.length <= bytesMax) return text;
  let end = bytesMax;
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

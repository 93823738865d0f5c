/** Cuts a receiver's answer to its beginning and masks secrets in it, for storage and display (law 7). */
import { limits } from '../../limits.js';

/** Longest secret: a URL with every slash escaped. */
const secretLengthMax = 2 * limits.webhook_url_length_max;

/** Copies just enough of an answer to show its beginning. An answer may be 64 KiB. */
export const beginningOf = (body: Buffer): Buffer =>
  Buffer.from(body.subarray(0, limits.delivery_answer_kept_bytes + secretLengthMax));

/** Tokens of bots and people, also URL-encoded. */
const tokens = /(\d{1,13}(?::|%3[Aa]))([AU][\w-]{34})/g;
const signingSecrets = /whsec_[A-Za-z0-9+/=]{16,}/g;

const stars = (text: string) => '*'.repeat(text.length);

/** The forms in which a receiver may echo a text: unchanged, and escaped in JSON. */
const forms = (secret: string) => new Set([secret, secret.replaceAll('/', '\\/')]);

function secretParts(secrets: readonly string[]): string[] {
  const parts = secrets.flatMap((secret) => {
    if (!URL.canParse(secret)) return [secret];
    // The secret of a URL is the part after the host.
    const { pathname, search } = new URL(secret);
    return [secret, `${pathname}${search}`, pathname].filter((part) => part.length > 8);
  });
  return parts.flatMap((part) => [...forms(part)]).filter((part) => part !== '');
}

/**
 * The first limits.delivery_answer_kept_bytes of a `beginningOf` result, as text. Tokens and `secrets` are masked by
 * stars of the same length, so that text beyond the limit cannot move into it.
 */
export function shownAnswer(beginning: Buffer, secrets: readonly string[]): string {
  if (beginning.length === 0) return '';
  // Postgres cannot store U+0000.
  let text = beginning.toString('utf8').replaceAll('\u0000', '\ufffd');
  // Longest first, because one secret may contain another.
  for (const part of secretParts(secrets).sort((a, b) => b.length - a.length)) {
    if (text.includes(part)) text = text.replaceAll(part, stars(part));
  }
  text = text
    .replace(tokens, (_, id: string, secret: string) => id + stars(secret))
    .replace(signingSecrets, stars);
  const bytes = Buffer.from(text);
  const max = limits.delivery_answer_kept_bytes;
  if (bytes.length <= max) return text;
  let end = max;
  // Remove a character cut in half by the limit.
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

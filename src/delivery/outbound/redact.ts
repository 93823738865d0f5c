/** What of a receiver's answer may be kept and shown: its beginning, without secrets (law 7). */
import { limits } from '../../limits.js';

/** No secret is longer: a URL with its slashes escaped. */
const secretLengthMax = 2 * limits.webhook_url_length_max;

/** Copies as much of an answer as is needed to show its beginning; an answer itself may be 64 KiB. */
export const beginningOf = (body: Buffer): Buffer =>
  Buffer.from(body.subarray(0, limits.delivery_answer_kept_bytes + secretLengthMax));

/** Tokens of bots and people, in a URL too. */
const tokens = /(\d{1,13}(?::|%3[Aa]))([AU][\w-]{34})/g;
const signingSecrets = /whsec_[A-Za-z0-9+/=]{16,}/g;

const stars = (text: string) => '*'.repeat(text.length);

/** The forms in which a text may come back: as it is, and inside JSON. */
const forms = (secret: string) => new Set([secret, secret.replaceAll('/', '\\/')]);

function secretParts(secrets: readonly string[]): string[] {
  const parts = secrets.flatMap((secret) => {
    if (!URL.canParse(secret)) return [secret];
    // What is behind the host is what makes a URL a secret.
    const { pathname, search } = new URL(secret);
    return [secret, `${pathname}${search}`, pathname].filter((part) => part.length > 8);
  });
  return parts.flatMap((part) => [...forms(part)]).filter((part) => part !== '');
}

/**
 * The first limits.delivery_answer_kept_bytes of what `beginningOf` gave, as text. Whatever looks like a token, and each of
 * `secrets`, is masked by as many stars, so that nothing behind the bound moves before it.
 */
export function shownAnswer(beginning: Buffer, secrets: readonly string[]): string {
  if (beginning.length === 0) return '';
  // Postgres stores no U+0000.
  let text = beginning.toString('utf8').replaceAll('\u0000', '\ufffd');
  // The longest first: one may be a part of another.
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
  // A character that the bound cuts is left out.
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

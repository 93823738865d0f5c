/**
 * Adds a person's signed identity to the link of a button that the person opens. The key is derived from the bot's
 * token, as the Bot API documents.
 */
import { createHash, createHmac } from 'node:crypto';
import type { Profile } from '../store/core/codec.js';
import { viewUser } from '../view/users.js';

type Fields = Readonly<Record<string, string>>;

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** Returns the text to sign: one line `name=value` per field, ordered by name. */
const checkText = (fields: Fields): string =>
  Object.keys(fields)
    .sort()
    .map((name) => `${name}=${fields[name]}`)
    .join('\n');

/**
 * Builds the address of a Web App. Its fragment contains the init data as `tgWebAppData`: `user`, `auth_date` in
 * seconds, and `hash`. The page can verify `hash` with the key HMAC-SHA256(`WebAppData`, token).
 */
export function webAppLink(url: string, token: string, person: Profile, seconds: number): string {
  const { is_bot: _, ...user } = viewUser(person);
  const fields = { auth_date: `${seconds}`, user: JSON.stringify(user) };
  const hash = hmac(hmac('WebAppData', token), checkText(fields)).toString('hex');
  const data = new URLSearchParams({ ...fields, hash }).toString();
  const fragment = new URLSearchParams({
    tgWebAppData: data,
    tgWebAppVersion: '7.0',
    tgWebAppPlatform: 'web',
  });
  return `${url}${url.includes('#') ? '&' : '#'}${fragment}`;
}

/**
 * Builds the address of a login button. Its query has the person's `id` and names, `auth_date` in seconds, and `hash`.
 * The page can verify `hash` with the key SHA-256(token).
 */
export function loginLink(url: string, token: string, person: Profile, seconds: number): string {
  const { id, first_name, last_name, username } = viewUser(person);
  const given = { id: `${id}`, first_name, last_name, username, auth_date: `${seconds}` };
  const fields = Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const hash = hmac(createHash('sha256').update(token).digest(), checkText(fields)).toString('hex');
  const link = new URL(url);
  for (const [name, value] of Object.entries({ ...fields, hash })) link.searchParams.set(name, value);
  return link.toString();
}

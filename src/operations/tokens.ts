/** Rotates keys and peppers, and lists leaked tokens (tasks `tokens …`). Never prints a token. */

import type { LeakRow } from '../postgres/accounts/leaks.js';
import { type Backends, StartError } from '../processes/backends.js';
import { ruleLimits as limits } from '../rules/limits.js';

const say = (line: string) => process.stdout.write(`${line}\n`);
const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/**
 * Encrypts all values again with the first key and pepper. Throws a StartError while a running node still has another
 * first key or pepper.
 */
export async function rotateKeys({ store, secrets, nodeKeys, connection }: Backends): Promise<void> {
  const [key] = secrets.checks.keys;
  const [pepper] = secrets.checks.peppers;
  for (const other of await nodeKeys.others()) {
    if (other.keys[0]?.id !== key?.id)
      throw new StartError(
        `a running node still encrypts with the key ${other.keys[0]?.id}: put ${key?.id} first in TOKEN_KEYS of every node, then rotate`,
      );
    if (other.peppers[0] !== pepper)
      throw new StartError(
        'a running node still has another first pepper: put the new pepper first in TOKEN_PEPPER of every node, then rotate',
      );
  }
  const { sealed, left, onFormerPepper } = await store.rotation(connection).run();
  say(
    `re-encrypted  ${counted(sealed.bot, 'bot token')}, ${counted(sealed.webhook, 'webhook')}, ` +
      `${counted(sealed.idempotency, 'kept answer')}${sealed.installation > 0 ? ', the root' : ''}`,
  );
  if (left > 0)
    throw new StartError(
      `${counted(left, 'box', 'boxes')} changed meanwhile or wait to be copied: run this command again`,
    );
  const former = secrets.checks.keys.slice(1).map(({ id }) => id);
  say(
    `keys         everything is encrypted with ${key?.id}${former.length > 0 ? `; ${former.join(', ')} can be removed` : ''}`,
  );
  const peppers = secrets.checks.peppers.length - 1;
  if (peppers > 0 && onFormerPepper === 0) say('peppers      former peppers can be removed');
  else if (peppers > 0)
    say(
      `peppers      up to ${counted(onFormerPepper, 'token')} of people may still need a former pepper: each changes to the new one at its ` +
        'next use, and stops working if the pepper is removed before',
    );
}

function lineOf(leak: LeakRow): string {
  const { bot_id, user_id, username, blocked, found_at, reported_by, place } = leak;
  const bot = `bot ${bot_id}${username === null ? '' : ` @${username}`}  ${blocked ? 'blocked' : 'replaced'}`;
  const what = bot_id === null ? `person ${user_id}  removed` : bot;
  return `${new Date(found_at).toISOString()}  ${what}  ${reported_by}  ${place || '-'}`;
}

export async function listLeaked({ store }: Backends): Promise<void> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await store.leaks.list(before, limits.page_size_max);
    for (const leak of page) say(lineOf(leak));
    const last = page.at(-1);
    if (last === undefined || page.length < limits.page_size_max) return;
    before = last.id;
  }
}

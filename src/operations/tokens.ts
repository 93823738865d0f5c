/** The tasks `tokens …`: rotate keys and peppers, and list leaked tokens. No token is ever printed. */
import { limits } from '../limits.js';
import { type Backends, StartError } from '../processes/backends.js';

const say = (line: string) => process.stdout.write(`${line}\n`);
const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/**
 * Re-encrypts everything with the first key and pepper. Errors: StartError while a running node still uses a former
 * first key or pepper.
 */
export async function rotateKeys({ store, secrets, ring, connection }: Backends): Promise<void> {
  const [key] = secrets.checks.keys;
  const [pepper] = secrets.checks.peppers;
  for (const other of await ring.others()) {
    if (other.keys[0]?.id !== key?.id)
      throw new StartError(
        `a running node still encrypts with the key ${other.keys[0]?.id}: put ${key?.id} first in TOKEN_KEYS of every node, then rotate`,
      );
    if (other.peppers[0] !== pepper)
      throw new StartError(
        'a running node still has another first pepper: put the new one first in TOKEN_PEPPER of every node, then rotate',
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
    `keys         everything is under ${key?.id}${former.length > 0 ? `; ${former.join(', ')} can be removed` : ''}`,
  );
  const peppers = secrets.checks.peppers.length - 1;
  if (peppers > 0 && onFormerPepper === 0) say('peppers      former peppers can be removed');
  else if (peppers > 0)
    say(
      `peppers      up to ${counted(onFormerPepper, 'token')} of people may still need a former pepper: each changes to the new one at its ` +
        'next use, and stops working if the pepper is removed before',
    );
}

/** Lists leaked tokens, latest first. */
export async function listLeaked({ store }: Backends): Promise<void> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await store.leaks.list(before, limits.page_size_max);
    for (const leak of page) {
      const whose =
        leak.bot_id === null
          ? `person ${leak.user_id}`
          : `bot ${leak.bot_id}${leak.username === null ? '' : ` @${leak.username}`}`;
      const state = leak.bot_id === null ? 'removed' : leak.blocked ? 'blocked' : 'replaced';
      say(
        `${new Date(leak.found_at).toISOString()}  ${whose}  ${state}  ${leak.reported_by}  ${leak.place || '-'}`,
      );
    }
    const last = page.at(-1);
    if (last === undefined || page.length < limits.page_size_max) return;
    before = last.id;
  }
}

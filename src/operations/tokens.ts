/** The tasks `tokens …`: what operators do about keys, peppers and leaked tokens. No token is ever printed. */
import { limits } from '../limits.js';
import { type Backends, StartError } from '../processes/backends.js';

const say = (line: string) => process.stdout.write(`${line}\n`);
const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** Seals everything anew. Errors: StartError while a running node still seals, or looks up, under a former one. */
export async function rotateKeys({ store, secrets, ring, connection }: Backends): Promise<void> {
  const [key] = secrets.checks.keys;
  const [pepper] = secrets.checks.peppers;
  for (const other of await ring.others()) {
    if (other.keys[0]?.id !== key?.id)
      throw new StartError(
        `a node that runs still seals under the key ${other.keys[0]?.id}: list ${key?.id} first in TOKEN_KEYS of every node, then rotate`,
      );
    if (other.peppers[0] !== pepper)
      throw new StartError(
        'a node that runs still has another first pepper: list the new one first in TOKEN_PEPPER of every node, then rotate',
      );
  }
  const { sealed, left, onFormerPepper } = await store.rotation(connection).run();
  say(
    `sealed anew  ${counted(sealed.bot, 'bot token')}, ${counted(sealed.webhook, 'webhook')}, ` +
      `${counted(sealed.idempotency, 'kept answer')}${sealed.installation > 0 ? ', the root' : ''}`,
  );
  if (left > 0)
    throw new StartError(
      `${counted(left, 'box', 'boxes')} changed meanwhile or wait to be copied: run it again`,
    );
  const former = secrets.checks.keys.slice(1).map(({ id }) => id);
  say(
    `keys         everything is under ${key?.id}${former.length > 0 ? `; no box needs ${former.join(', ')} any more` : ''}`,
  );
  const peppers = secrets.checks.peppers.length - 1;
  if (peppers > 0 && onFormerPepper === 0) say('peppers      no token needs a former pepper any more');
  else if (peppers > 0)
    say(
      `peppers      up to ${counted(onFormerPepper, 'token')} of people may still need a former pepper: each moves when it is ` +
        'used next, and is lost if the pepper goes before',
    );
}

/** Lists what leaked, the latest first. */
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

/** Manages administrators' tokens and prints the log of administrators' calls (tasks `admin …`). */
import { userInfo } from 'node:os';
import { z } from 'zod';
import { ApiError } from '../errors.js';
import { type Backends, StartError } from '../processes/backends.js';
import { ruleLimits } from '../rules/limits.js';
import { callLimits } from '../server/limits.js';
import { storeLimits } from '../store/limits.js';
import { personName, username } from '../wire/fields.js';

const say = (line: string) => process.stdout.write(`${line}\n`);
const timeOf = (seconds: number) => new Date(seconds * 1_000).toISOString();

async function noted<T>(
  { store }: Backends,
  action: string,
  target: string,
  work: () => Promise<T>,
): Promise<T> {
  const token = `shell of ${userInfo().username}`;
  const end = await store.admins.begin({ token, action, target, address: '' });
  try {
    const result = await work();
    await end(200);
    return result;
  } catch (error) {
    await end(error instanceof StartError ? 400 : 500);
    throw error;
  }
}

/** Creates a token and prints it. It is never shown again. Throws a StartError for an invalid name. */
export async function addAdmin(backends: Backends, name: string, days: number | null): Promise<void> {
  if (!/^[a-z0-9][a-z0-9._-]{0,31}$/.test(name))
    throw new StartError('a name has up to 32 lower-case letters, digits, dots, hyphens and underscores');
  if (days !== null && !(Number.isInteger(days) && days >= 1 && days <= 3_650))
    throw new StartError('--days must be a whole number from 1 to 3650');
  const made = await noted(backends, 'petrel admin tokens add', name, async () => {
    const added = await backends.store.admins.add(name, days);
    if (added === 'taken') throw new StartError(`a token ${name} already exists: revoke it first`);
    if (added === 'full')
      throw new StartError(`there are already ${storeLimits.admin_tokens_max} tokens: revoke one first`);
    return added;
  });
  say(made.token);
}

export async function listAdmins({ store, time }: Backends): Promise<void> {
  const now = time.now() / 1_000;
  for (const { name, created_at, expires_at } of await store.admins.list()) {
    const end =
      expires_at === null
        ? 'does not expire'
        : `${expires_at <= now ? 'expired' : 'expires'} ${timeOf(expires_at)}`;
    say(`${name}  added ${timeOf(created_at)}  ${end}`);
  }
}

/** Revokes a token. Returns only after all nodes refuse it. Throws a StartError if no token has this name. */
export async function revokeAdmin(backends: Backends, name: string): Promise<void> {
  await noted(
    backends,
    'petrel admin tokens revoke',
    name.slice(0, callLimits.admin_target_length_max),
    async () => {
      if (!(await backends.store.admins.revoke(name))) throw new StartError(`no token is named ${name}`);
    },
  );
  say(`${name} is revoked: no node accepts this token now`);
}

/** Prints the newest log entries. Throws a StartError for an invalid count. */
export async function listCalls({ store }: Backends, count: number): Promise<void> {
  if (!Number.isInteger(count) || count < 1) throw new StartError('--limit must be a whole number from 1');
  let before: number = ruleLimits.id_max;
  for (let left = count; left > 0; ) {
    const items = await store.admins.calls(before, Math.min(left, ruleLimits.page_size_max));
    for (const { at, token, action, target, status, address, times } of items)
      say(
        [timeOf(at), token, action, target || '-', status ?? 'end unknown', address || '-', `${times}x`].join(
          '  ',
        ),
      );
    const last = items.at(-1);
    if (last === undefined) return;
    before = last.id;
    left -= items.length;
  }
}

/**
 * Creates a person and prints the person's first token, which is never shown again. Throws a StartError for an invalid
 * or taken name.
 */
export async function addPerson(backends: Backends, given: string, firstName: string): Promise<void> {
  const parsed = z
    .object({ username, first_name: personName })
    .safeParse({ username: given, first_name: firstName });
  if (!parsed.success) {
    const [wrong] = parsed.error.issues;
    throw new StartError(
      wrong?.path[0] === 'username'
        ? `${given} cannot be a username: ${ruleLimits.username_length_min} to ${ruleLimits.username_length_max} letters, digits and single underscores, starting with a letter and not ending with an underscore`
        : `a first name has 1 to ${ruleLimits.person_name_length_max} characters`,
    );
  }
  const { user, token } = await noted(
    backends,
    'petrel users add',
    given.slice(0, callLimits.admin_target_length_max),
    () =>
      backends.store.users.create(parsed.data).catch((error: unknown) => {
        if (!(error instanceof ApiError) || error.kind !== 'username_taken') throw error;
        throw new StartError(`the username ${given} is taken`);
      }),
  );
  say(`person ${user.id} @${given}`);
  say(token);
}

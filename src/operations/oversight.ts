/** Suspends bots and people, and ends their suspensions (tasks `bots …` and `users …`, behaviour §14). */

import { findName } from '../postgres/accounts/users.js';
import { asDatabase } from '../postgres/sql.js';
import { type Backends, StartError } from '../processes/backends.js';

/** Returns an account's id. `name` is the id or the username. Throws a StartError for an unknown username. */
async function idOf({ pool }: Backends, name: string): Promise<number> {
  if (/^\d{1,13}$/.test(name)) return Number(name);
  const id = await findName(asDatabase(pool), name.replace(/^@/, ''));
  if (id === null) throw new StartError(`nobody has the username ${name}`);
  return id;
}

/**
 * Suspends an account or ends its suspension. Returns only after every node refuses the account's tokens, or accepts
 * them again. Throws a StartError if there is no such bot or person.
 */
export async function suspend(
  backends: Backends,
  what: 'bot' | 'user',
  name: string,
  suspended: boolean,
): Promise<void> {
  const id = await idOf(backends, name);
  const { oversight } = backends.store;
  const call = what === 'bot' ? oversight.suspendBot : oversight.suspendUser;
  await call(id, suspended).catch((error: { readonly kind?: string }) => {
    throw error.kind === `${what}_not_found` ? new StartError(`there is no ${what} ${name}`) : error;
  });
  process.stdout.write(`${what} ${id} ${suspended ? 'is suspended' : 'is active again'}\n`);
}

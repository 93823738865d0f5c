/** The tasks `bots …` and `users …`: operators suspend bots and people, and let them go on (behaviour §14). */

import { findName } from '../postgres/accounts/users.js';
import { asDatabase } from '../postgres/sql.js';
import { type Backends, StartError } from '../processes/backends.js';

/** Id of whoever an argument names by id or username. Throws a StartError when a username is nobody's. */
async function idOf({ pool }: Backends, name: string): Promise<number> {
  if (/^\d{1,13}$/.test(name)) return Number(name);
  const id = await findName(asDatabase(pool), name.replace(/^@/, ''));
  if (id === null) throw new StartError(`nobody is called ${name}`);
  return id;
}

/** Returns when no node accepts the tokens any more, or all do again. Throws a StartError when there is no such bot or person. */
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
  process.stdout.write(`${what} ${id} ${suspended ? 'is suspended' : 'goes on'}\n`);
}

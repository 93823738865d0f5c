/** People and their tokens. */
import { randomBytes } from 'node:crypto';
import { fail } from '../errors.js';
import type { Database } from '../postgres/sql.js';
import * as rows from '../postgres/users.js';
import { makeToken } from '../rules/token.js';
import type { Auth } from './auth.js';
import type { StoreContext } from './context.js';
import type { ControlCopies, User } from './control.js';

export interface Users {
  /** Null when there is no such person. */
  find(id: number): Promise<User | null>;
  /** The person who has this username, without `@`. */
  findByUsername(username: string): Promise<User | null>;
  /** Error: `username_taken`. */
  create(user: rows.NewUser): Promise<{ readonly user: User; readonly token: string }>;
  /** Error: `user_not_found`. */
  addToken(id: number): Promise<string>;
  /** When this returns, no node accepts any token the person had. Error: `user_not_found`. */
  removeTokens(id: number): Promise<void>;
}

/** `anew` is the database for what every run of a call does again. */
export function createUsers(
  context: StoreContext,
  anew: Database,
  control: ControlCopies,
  auth: Auth,
): Users {
  const { db, secrets } = context;
  const newToken = (id: number) => makeToken('user', id, randomBytes(32));
  /** Each run of a call issues one of its own: nobody has that of a run that died. */
  async function issue(id: number): Promise<string> {
    const token = newToken(id);
    if (!(await rows.addUserToken(anew, id, secrets.lookup(token)))) fail('user_not_found');
    await control.refresh('user', id);
    return token;
  }
  return {
    find: (id) => control.read('user', id),
    async findByUsername(username) {
      const id = await rows.findName(db, username);
      return id === null ? null : control.read('user', id);
    },
    async create(user) {
      let token = '';
      const id = await rows.createUser(db, user, (made) => {
        token = newToken(made);
        return secrets.lookup(token);
      });
      // A former run of the call made it, and its token is kept as a digest alone.
      if (token === '') token = await issue(id);
      const created = await control.read('user', id);
      return { user: created as User, token };
    },
    addToken: issue,
    async removeTokens(id) {
      if (!(await rows.removeUserTokens(db, id))) fail('user_not_found');
      await control.refresh('user', id);
      await auth.revoke(`user:${id}`);
    },
  };
}

/** People and their tokens. */
import { randomBytes } from 'node:crypto';
import { fail } from '../errors.js';
import * as rows from '../postgres/users.js';
import { makeToken } from '../rules/token.js';
import type { Auth } from './auth.js';
import type { StoreContext } from './context.js';
import type { ControlCopies, User } from './control.js';

export interface Users {
  /** Null when there is no such person. */
  find(id: number): Promise<User | null>;
  /** Error: `username_taken`. */
  create(user: rows.NewUser): Promise<{ readonly user: User; readonly token: string }>;
  /** Error: `user_not_found`. */
  addToken(id: number): Promise<string>;
  /** When this returns, no node accepts any token the person had. Error: `user_not_found`. */
  removeTokens(id: number): Promise<void>;
}

export function createUsers(context: StoreContext, control: ControlCopies, auth: Auth): Users {
  const { db, secrets } = context;
  const newToken = (id: number) => makeToken('user', id, randomBytes(32));
  return {
    find: (id) => control.read('user', id),
    async create(user) {
      let token = '';
      const id = await rows.createUser(db, user, (made) => {
        token = newToken(made);
        return secrets.lookup(token);
      });
      const created = await control.read('user', id);
      return { user: created as User, token };
    },
    async addToken(id) {
      const token = newToken(id);
      if (!(await rows.addUserToken(db, id, secrets.lookup(token)))) fail('user_not_found');
      await control.refresh('user', id);
      return token;
    },
    async removeTokens(id) {
      if (!(await rows.removeUserTokens(db, id))) fail('user_not_found');
      await control.refresh('user', id);
      await auth.revoke(`user:${id}`);
    },
  };
}

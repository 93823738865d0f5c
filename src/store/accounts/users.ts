/** People and their tokens. */
import { randomBytes } from 'node:crypto';
import { fail } from '../../errors.js';
import * as rows from '../../postgres/accounts/users.js';
import type { Database } from '../../postgres/sql.js';
import { makeToken } from '../../rules/token.js';
import type { Auth } from '../access/auth.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies, User } from '../core/control.js';
import type { Identities } from './identities.js';

export type { NewUser } from '../../postgres/accounts/users.js';

export interface Users {
  /** Finds a person. Returns null if there is none. */
  find(id: number): Promise<User | null>;
  /** Finds the person with this username, given without `@`. */
  findByUsername(username: string): Promise<User | null>;
  /**
   * Creates a person, optionally linked to a subject of the identity provider. Errors: `username_taken`,
   * `subject_taken`, `no_identity_provider`.
   */
  create(user: rows.NewUser, subject?: string): Promise<{ readonly user: User; readonly token: string }>;
  /**
   * Sets the person's language, and who may add the person to groups and channels. Once this returns, every node uses
   * the new values. Error: `user_not_found`.
   */
  change(id: number, change: rows.UserChange): Promise<User>;
  /** Issues another token; an empty name means none. Errors: `user_not_found`, `too_many_tokens`, `token_name_taken`. */
  addToken(id: number, name?: string): Promise<{ readonly id: number; readonly token: string }>;
  /** A person's tokens with ids greater than `after`, without their secrets, of which only digests are stored. */
  tokens(id: number, after: number, limit: number): Promise<readonly rows.UserTokenRow[]>;
  /** Removes one token. Once this returns, no node accepts it. Error: `token_not_found`. */
  removeToken(id: number, which: { readonly id: number } | { readonly name: string }): Promise<void>;
  /** Removes all of a person's tokens. Once this returns, no node accepts any of them. Error: `user_not_found`. */
  removeTokens(id: number): Promise<void>;
}

/** `rawDb` bypasses the once-per-request wrapper, for steps that must rerun on retry. */
export function createUsers(
  context: StoreContext,
  rawDb: Database,
  control: ControlCopies,
  auth: Auth,
  identities: Identities,
): Users {
  const { db, secrets } = context;
  const newToken = (id: number) => makeToken('user', id, randomBytes(32));
  /**
   * Returns a plain token. If an earlier run of the call already added the token, its secret is replaced, because only
   * its digest was stored.
   */
  async function issue(user: number, name: string, on: Database): Promise<{ id: number; token: string }> {
    const token = newToken(user);
    const lookup = secrets.lookup(token);
    const made = (await rows.addUserToken(on, user, name, lookup)) ?? fail('user_not_found');
    const isOwn = made.lookup === lookup.toString('base64');
    if (!isOwn && !(await rows.replaceUserToken(rawDb, user, made.id, lookup))) fail('token_not_found');
    await control.refresh('user', user);
    return { id: made.id, token };
  }
  return {
    find: (id) => control.read('user', id),
    async findByUsername(username) {
      const id = await rows.findName(db, username);
      return id === null ? null : control.read('user', id);
    },
    async create(user, subject) {
      let token = '';
      const linked = subject === undefined ? undefined : identities.taking(subject);
      const lookupFor = (made: number) => {
        token = newToken(made);
        return secrets.lookup(token);
      };
      const id = await rows.createUser(db, user, lookupFor, linked?.within);
      await linked?.after();
      // An earlier run of this call created the person. Its token is unknown, because only the digest is stored.
      if (token === '') ({ token } = await issue(id, '', rawDb));
      const created = await control.read('user', id);
      return { user: created as User, token };
    },
    async change(id, change) {
      if (!(await rows.changeUser(db, id, change))) fail('user_not_found');
      await control.refresh('user', id);
      // Nodes cache the person with the token, including the language.
      await auth.revoke(`user:${id}`);
      return (await control.read('user', id)) ?? fail('user_not_found');
    },
    addToken: (id, name = '') => issue(id, name, db),
    tokens: (id, after, limit) => rows.loadUserTokens(db, id, after, limit),
    async removeToken(id, which) {
      await auth.revoking(`user:${id}`, async () => {
        if (!(await rows.removeUserToken(db, id, which))) fail('token_not_found');
        await control.forget('user', id);
      });
    },
    async removeTokens(id) {
      await auth.revoking(`user:${id}`, async () => {
        if (!(await rows.removeUserTokens(db, id))) fail('user_not_found');
        await control.forget('user', id);
      });
    },
  };
}

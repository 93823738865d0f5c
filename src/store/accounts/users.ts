/** Manages people and their tokens. */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/accounts/users.js';
import { welcome } from '../../postgres/bots/notices.js';
import type { Database } from '../../postgres/sql.js';
import { makeToken } from '../../rules/token.js';
import type { Auth } from '../access/auth.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies, User } from '../core/control.js';
import type { Identities } from './identities.js';

export type { NewUser } from '../../postgres/accounts/users.js';

export type Users = ReturnType<typeof createUsers>;

/**
 * Steps that must run again on a retry use `rawDb`. It bypasses the wrapper that runs each transaction only once per
 * request.
 */
export function createUsers(
  context: StoreContext,
  rawDb: Database,
  control: ControlCopies,
  auth: Auth,
  identities: Identities,
) {
  const { db, secrets } = context;
  const newToken = (id: number) => makeToken('user', id, context.random.bytes(32));
  /**
   * Issues a token and returns it in plain text. If an earlier attempt of this call already added the token, replaces
   * its secret. Postgres has only the digest of the earlier secret, so the secret itself is lost.
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
    find: (id: number): Promise<User | null> => control.read('user', id),
    async findByUsername(username: string): Promise<User | null> {
      const id = await rows.findName(db, username);
      return id === null ? null : control.read('user', id);
    },
    /**
     * Creates a person with a first token. If `subject` is given, links the person to the identity provider. If `agent`
     * is given, the person is signing up: the token is a session, and the management bot welcomes the person. Errors:
     * `username_taken`, `subject_taken`, `no_identity_provider`.
     */
    async create(
      user: rows.NewUser,
      { subject, agent }: { subject?: string | undefined; agent?: string } = {},
    ) {
      let token = '';
      const linked = subject === undefined ? undefined : identities.taking(subject);
      const lookupFor = (made: number) => {
        token = newToken(made);
        return secrets.lookup(token);
      };
      const also = linked?.within ?? (agent === undefined ? undefined : welcome);
      const id = await rows.createUser(db, user, lookupFor, agent, also);
      await linked?.after();
      // If an earlier attempt of this call created the person, replaces that attempt's token. Postgres has only the
      // token's digest, so the token itself is lost.
      if (token === '') ({ token } = await issue(id, '', rawDb));
      const created = await control.read('user', id);
      return { user: created as User, token };
    },
    /**
     * Issues a token. If `name` is empty, the token has no name. Errors: `user_not_found`, `too_many_tokens`,
     * `token_name_taken`.
     */
    addToken: (id: number, name: string = '') => issue(id, name, db),
    /** Returns tokens with ids greater than `after`, without their secrets, because only the digests are stored. */
    tokens: (id: number, after: number, limit: number) => rows.loadUserTokens(db, id, after, limit),
    /** Removes a token. Afterwards no node accepts it. Error: `token_not_found`. */
    async removeToken(id: number, which: { readonly id: number } | { readonly name: string }) {
      await auth.revoking(`user:${id}`, async () => {
        if (!(await rows.removeUserToken(db, id, which))) fail('token_not_found');
        await control.forget('user', id);
      });
    },
    /** Removes all tokens. Afterwards no node accepts any of these tokens. Error: `user_not_found`. */
    async removeTokens(id: number) {
      await auth.revoking(`user:${id}`, async () => {
        if (!(await rows.removeUserTokens(db, id))) fail('user_not_found');
        await control.forget('user', id);
      });
    },
  };
}

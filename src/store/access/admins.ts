/**
 * Administrators: the tokens they have by name, and the log of what they called. A token is looked up in Postgres at each call and
 * nowhere remembered, so that no node accepts it once `revoke` has returned.
 */
import { randomBytes } from 'node:crypto';
import { limits } from '../../limits.js';
import {
  type AdminCall,
  type AdminCallRow,
  type AdminTokenRow,
  addAdminToken,
  beginAdminCall,
  countAdminCall,
  endAdminCall,
  findAdminToken,
  listAdminCalls,
  listAdminTokens,
  removeAdminToken,
} from '../../postgres/accounts/admins.js';
import { isAdminToken, makeAdminToken } from '../../rules/token.js';
import type { StoreContext } from '../core/context.js';

export type { AdminCall, AdminCallRow, AdminTokenRow };

export interface Admins {
  /** Null for a token that is not valid now. Error: `unavailable`. */
  find(token: string): Promise<{ readonly id: number; readonly name: string } | null>;
  /** Issues a token that is valid for `days`, or for ever if null. `taken`: another has the name. `full`: there are too many. */
  add(name: string, days: number | null): Promise<{ readonly token: string } | 'taken' | 'full'>;
  list(): Promise<readonly AdminTokenRow[]>;
  /** Once this has returned no node accepts the token. False when there is none of this name. */
  revoke(name: string): Promise<boolean>;
  /** Notes a change before it is made. Returns what notes its end, which does not throw. Error: `unavailable`. */
  begin(call: AdminCall): Promise<(status: number) => Promise<void>>;
  /** Notes a call that changed nothing, in the background. Those alike of one hour are one entry. */
  note(call: AdminCall, status: number): void;
  /** The log, newest first, below the entry `before`. */
  calls(before: number, limit: number): Promise<readonly AdminCallRow[]>;
}

export function createAdmins({ db, secrets }: StoreContext, onError: (error: unknown) => void): Admins {
  let noting = 0;
  // Tokens are as random as a key, and their fingerprint outlives every pepper.
  const fingerprintOf = (token: string) => secrets.fingerprint(`admin ${token}`);
  return {
    async find(token) {
      // What is no token of this form is not looked up.
      return isAdminToken(token) ? findAdminToken(db, fingerprintOf(token)) : null;
    },
    async add(name, days) {
      const random = randomBytes(32);
      const made = {
        name,
        days,
        fingerprintOf: (id: number) => fingerprintOf(makeAdminToken(id, random)),
      };
      const id = await addAdminToken(db, made, limits.admin_tokens_max);
      return typeof id === 'number' ? { token: makeAdminToken(id, random) } : id;
    },
    list: () => listAdminTokens(db),
    revoke: (name) => removeAdminToken(db, name),
    async begin(call) {
      const id = await beginAdminCall(db, call);
      return (status) => endAdminCall(db, id, status).catch(onError);
    },
    note(call, status) {
      if (noting >= limits.admin_notes_in_flight_max) {
        onError(new Error('a call of an administrator was not noted: too many are being noted'));
        return;
      }
      noting++;
      countAdminCall(db, call, status)
        .catch(onError)
        .finally(() => {
          noting--;
        });
    },
    calls: (before, limit) => listAdminCalls(db, before, limit),
  };
}

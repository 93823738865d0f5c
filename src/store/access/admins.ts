/**
 * Administrators' tokens, identified by name, and the log of their calls. A token is looked up in Postgres for each
 * call and never cached. So no node accepts it once `revoke` has returned.
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
  /** Finds the owner of a token; null if the token is not valid. Error: `unavailable`. */
  find(token: string): Promise<{ readonly id: number; readonly name: string } | null>;
  /**
   * Issues a token that is valid for `days`, or forever if null. Returns `taken` if the name is in use, `full` if there
   * are too many tokens.
   */
  add(name: string, days: number | null): Promise<{ readonly token: string } | 'taken' | 'full'>;
  list(): Promise<readonly AdminTokenRow[]>;
  /** Revokes a token. Once this returns, no node accepts it. Returns false if no token has this name. */
  revoke(name: string): Promise<boolean>;
  /** Logs a change before it is made. Returns a function that logs its result and never throws. Error: `unavailable`. */
  begin(call: AdminCall): Promise<(status: number) => Promise<void>>;
  /** Logs a call that changed nothing, in the background. Identical calls within an hour share one entry. */
  note(call: AdminCall, status: number): void;
  /** Log entries with ids below `before`, newest first. */
  calls(before: number, limit: number): Promise<readonly AdminCallRow[]>;
}

export function createAdmins({ db, secrets }: StoreContext, onError: (error: unknown) => void): Admins {
  let noting = 0;
  // The token is as random as a key, so its fingerprint needs no pepper and stays valid when peppers change.
  const fingerprintOf = (token: string) => secrets.fingerprint(`admin ${token}`);
  return {
    async find(token) {
      // Malformed tokens are not looked up.
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
        onError(new Error('an administrator call was not logged: too many log writes are pending'));
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

/**
 * Manages administrators' tokens, and logs the calls made with them. Each token has a name. Each call looks up its
 * token in Postgres without a cache, so no node accepts a token after `revoke` has returned.
 */
import * as rows from '../../postgres/accounts/admins.js';
import { isAdminToken, makeAdminToken } from '../../rules/token.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

export type { AdminCall, AdminCallRow, AdminTokenRow } from '../../postgres/accounts/admins.js';

export type Admins = ReturnType<typeof createAdmins>;

export function createAdmins({ db, secrets, random }: StoreContext, onError: (error: unknown) => void) {
  let noting = 0;
  // Returns a fingerprint of a token. Needs no pepper, because the token is as random as a key. The fingerprint
  // therefore stays valid when peppers change.
  const fingerprintOf = (token: string) => secrets.fingerprint(`admin ${token}`);
  return {
    /** Returns the administrator with this token, or null if the token is not valid. Error: `unavailable`. */
    async find(token: string): Promise<{ readonly id: number; readonly name: string } | null> {
      // A malformed token needs no lookup.
      return isAdminToken(token) ? rows.findAdminToken(db, fingerprintOf(token)) : null;
    },
    /**
     * Issues a token. If `days` is null, the token never expires. Returns `taken` if the name is in use, or `full` if
     * there are too many tokens.
     */
    async add(name: string, days: number | null): Promise<{ readonly token: string } | 'taken' | 'full'> {
      const bytes = random.bytes(32);
      const made = {
        name,
        days,
        fingerprintOf: (id: number) => fingerprintOf(makeAdminToken(id, bytes)),
      };
      const id = await rows.addAdminToken(db, made, limits.admin_tokens_max);
      return typeof id === 'number' ? { token: makeAdminToken(id, bytes) } : id;
    },
    list: () => rows.listAdminTokens(db),
    /** Revokes a token. Afterwards no node accepts it. Returns false if no token has this name. */
    revoke: (name: string) => rows.removeAdminToken(db, name),
    /**
     * Logs a call before the call changes anything. Returns a function that logs the call's result and never throws.
     * Error: `unavailable`.
     */
    async begin(call: rows.AdminCall): Promise<(status: number) => Promise<void>> {
      const id = await rows.beginAdminCall(db, call);
      return (status) => rows.endAdminCall(db, id, status).catch(onError);
    },
    /** Logs a call that only read data. Logs in the background, with one entry for identical calls within an hour. */
    note(call: rows.AdminCall, status: number) {
      if (noting >= limits.admin_notes_in_flight_max) {
        onError(new Error('an administrator call was not logged: too many log writes are pending'));
        return;
      }
      noting++;
      rows
        .countAdminCall(db, call, status)
        .catch(onError)
        .finally(() => {
          noting--;
        });
    },
    calls: (before: number, limit: number) => rows.listAdminCalls(db, before, limit),
  };
}

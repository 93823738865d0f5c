/** Manages people's sessions. A session is a token that was issued at a sign-in (decision 0082). */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/accounts/sessions.js';
import { takePiece } from '../../postgres/messages/retention.js';
import { makeToken } from '../../rules/token.js';
import type { Auth } from '../access/auth.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { storeLimits as limits } from '../limits.js';
import type { Removed } from './retention.js';

export type Sessions = ReturnType<typeof createSessions>;

export function createSessions({ db, secrets, random }: StoreContext, control: ControlCopies, auth: Auth) {
  /** Removes sessions. Afterwards no node accepts their tokens. Returns how many were removed. */
  const remove = (user: number, which: rows.SessionsEnded) =>
    auth.revoking(`user:${user}`, async () => {
      const removed = await rows.removeSessions(db, user, which);
      await control.forget('user', user);
      return removed;
    });
  return {
    /**
     * Starts a session and returns its token. If the person has too many sessions, first ends the one that has been
     * unused for longest. Error: `user_not_found`.
     */
    async start(user: number, agent: string): Promise<string> {
      const token = makeToken('user', user, random.bytes(32));
      const lookup = secrets.lookup(token);
      const { removed } = (await rows.addSession(db, user, agent, lookup)) ?? fail('user_not_found');
      await control.refresh('user', user);
      if (removed) await auth.revoke(`user:${user}`);
      return token;
    },
    /** Returns the person's sessions, newest first. `token` is the caller's token and marks the current session. */
    list: (user: number, token: string) => rows.loadSessions(db, user, secrets.lookups(token)),
    /**
     * Ends sessions that were not used for `days`, in steps. Returns null if another process is already ending
     * sessions, or if the last pass ended less than limits.retention_interval_ms ago.
     */
    async endUnused(days: number): Promise<Removed | null> {
      const ended = { users: [] as readonly number[], removed: 0 };
      const step = await takePiece(db, 'sessions', limits.retention_interval_ms, 0, async (sql, after) => {
        const found = await rows.removeUnused(sql, days, after, limits.retention_batch_max);
        ended.users = found.users;
        ended.removed = found.removed;
        return { place: found.place, over: found.over };
      });
      const { users, removed } = ended;
      await control.forgetMany('user', users);
      await auth.revoke(...users.map((user) => `user:${user}` as const));
      return step && { removed, more: !step.over };
    },
    /** Error: `session_not_found`. */
    async end(user: number, id: number): Promise<void> {
      if ((await remove(user, { id })) === 0) fail('session_not_found');
    },
    /** Ends the session of this token. A token that is not a session stays valid. */
    async endOwn(user: number, token: string): Promise<void> {
      const own = secrets.lookups(token);
      const sessions = await rows.loadSessions(db, user, own);
      if (sessions.some(({ is_current }) => is_current)) await remove(user, { own });
    },
    /** Ends all sessions except the one with this token. Returns how many were ended. */
    endOthers: (user: number, token: string) => remove(user, { except: secrets.lookups(token) }),
  };
}

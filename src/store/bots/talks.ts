/**
 * Stores the state of people's conversations with the management bot. The state is in Postgres, because the hot path
 * does not use it. If a worker dies, another worker handles the update again. It starts from the same state and
 * therefore gets the same result.
 */

import { loadTalk, saveTalk } from '../../postgres/chats/talks.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

export const createTalks = ({ db }: StoreContext) => ({
  /** Returns the state before this update, or null if there is no state or it is older than limits.talk_age_ms_max. */
  begin: <T>(user: number, update: number): Promise<T | null> =>
    loadTalk(db, user, update, limits.talk_age_ms_max),
  end: (user: number, update: number, before: unknown, state: unknown) =>
    saveTalk(db, user, update, before, state),
});

/**
 * Stores the state of conversations with the management bot. The state is in Postgres, because it is not read or
 * written on the hot path. If a worker dies, another worker handles the update again. The state is then the same, and
 * therefore the result is the same too.
 */

import { loadTalk, saveTalk } from '../../postgres/chats/talks.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

export const createTalks = ({ db }: StoreContext) => ({
  /**
   * Returns the state before this update. Returns null if there is no state, or if the state is older than
   * limits.talk_age_ms_max.
   */
  begin: <T>(user: number, update: number): Promise<T | null> =>
    loadTalk(db, user, update, limits.talk_age_ms_max),
  end: (user: number, update: number, before: unknown, state: unknown) =>
    saveTalk(db, user, update, before, state),
});

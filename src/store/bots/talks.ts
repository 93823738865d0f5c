/**
 * Stores the state of people's conversations with the management bot. The state is in Postgres, because only this bot's
 * conversations need it and other calls do not wait for it. If a worker dies while it handles an update, another worker
 * handles the update again, with the same state and the same result.
 */

import { loadTalk, saveTalk } from '../../postgres/chats/talks.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

export const createTalks = ({ db }: StoreContext) => ({
  /**
   * Returns the state of the conversation before this update, or null if there is no state or it is older than
   * limits.talk_age_ms_max.
   */
  begin: <T>(user: number, update: number): Promise<T | null> =>
    loadTalk(db, user, update, limits.talk_age_ms_max),
  end: (user: number, update: number, before: unknown, state: unknown) =>
    saveTalk(db, user, update, before, state),
});

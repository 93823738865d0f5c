/**
 * Conversation state of the management bot, kept in Postgres because it is not on the hot path. If a worker dies, the
 * update is handled again from the same state, so it has the same outcome.
 */
import { limits } from '../../limits.js';
import { loadTalk, saveTalk } from '../../postgres/chats/talks.js';
import type { StoreContext } from '../core/context.js';

export interface Talks {
  /** The conversation's state before this update; null if there is none, or after limits.talk_age_ms_max. */
  begin<T>(user: number, update: number): Promise<T | null>;
  /** Stores the conversation's state after this update. */
  end(user: number, update: number, before: unknown, state: unknown): Promise<void>;
}

export const createTalks = ({ db }: StoreContext): Talks => ({
  begin: (user, update) => loadTalk(db, user, update, limits.talk_age_ms_max),
  end: (user, update, before, state) => saveTalk(db, user, update, before, state),
});

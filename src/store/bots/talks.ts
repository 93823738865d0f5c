/**
 * Conversations with the management bot, in Postgres: they are no hot path. An update that is handled again, because who
 * handled it first died, is given the state from which it was begun, and so goes the same way.
 */
import { limits } from '../../limits.js';
import { loadTalk, saveTalk } from '../../postgres/chats/talks.js';
import type { StoreContext } from '../core/context.js';

export interface Talks {
  /** The state that this update begins from; null for none, and after limits.talk_age_ms_max. */
  begin<T>(user: number, update: number): Promise<T | null>;
  /** Notes where it leads from there. */
  end(user: number, update: number, before: unknown, state: unknown): Promise<void>;
}

export const createTalks = ({ db }: StoreContext): Talks => ({
  begin: (user, update) => loadTalk(db, user, update, limits.talk_age_ms_max),
  end: (user, update, before, state) => saveTalk(db, user, update, before, state),
});

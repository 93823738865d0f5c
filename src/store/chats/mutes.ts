/** Chats that people do not want to be notified of: kept in Postgres alone, and asked for with the list of chats. */
import { ApiError, fail } from '../../errors.js';
import { loadMutes, putMute, removeMute } from '../../postgres/chats/mutes.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Chats } from './chats.js';

/** By chat, as the person names it: until when (Unix time in seconds), null for ever. */
export type MutedChats = ReadonlyMap<number, number | null>;

export interface Mutes {
  /** Of the chats those that are muted now; none while Postgres is away: a list of chats is shown without them. */
  of(user: number, chats: readonly number[]): Promise<MutedChats>;
  /** Mutes until a time (Unix, seconds), or for ever. Errors: `chat_not_found`, `unavailable`. */
  set(user: number, chat: ChatRef, until: number | null): Promise<void>;
  /** Error: `unavailable`. */
  clear(user: number, chat: ChatRef): Promise<void>;
}

export function createMutes({ db }: StoreContext, chats: Pick<Chats, 'find'>): Mutes {
  return {
    async of(user, ids) {
      try {
        return new Map((await loadMutes(db, user, ids)).map(({ chat_id, until }) => [chat_id, until]));
      } catch (error) {
        if (error instanceof ApiError && error.kind === 'unavailable') return new Map();
        throw error;
      }
    },
    async set(user, chat, until) {
      // Of what is not there nothing is kept.
      if (!(await chats.find(chat))) fail('chat_not_found');
      await putMute(db, user, chat.id, until);
    },
    clear: (user, chat) => removeMute(db, user, chat.id),
  };
}

/** Muted chats, which are stored only in Postgres and read together with the chat list. */
import { ApiError, fail } from '../../errors.js';
import { loadMutes, putMute, removeMute } from '../../postgres/chats/mutes.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Chats } from './chats.js';

/** Maps the person's chat id to the end of the mute (Unix time in seconds); null means forever. */
export type MutedChats = ReadonlyMap<number, number | null>;

export interface Mutes {
  /**
   * The chats among these that are muted. Empty while Postgres is unreachable: the chat list is then shown without
   * mutes.
   */
  of(user: number, chats: readonly number[]): Promise<MutedChats>;
  /** Mutes a chat until a time (Unix seconds), or forever if null. Errors: `chat_not_found`, `unavailable`. */
  set(user: number, chat: ChatRef, until: number | null): Promise<void>;
  /** Ends the mute of a chat. Error: `unavailable`. */
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
      // Do not store rows for chats that do not exist.
      if (!(await chats.find(chat))) fail('chat_not_found');
      await putMute(db, user, chat.id, until);
    },
    clear: (user, chat) => removeMute(db, user, chat.id),
  };
}

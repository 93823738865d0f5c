/** Manages muted chats. They are stored only in Postgres and loaded together with the chat list. */
import { ApiError, fail } from '../../errors.js';
import { loadMutes, putMute, removeMute } from '../../postgres/chats/mutes.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Chats } from './chats.js';

/** Maps the person's chat id to the end of the mute (Unix time in seconds). Null means forever. */
export type MutedChats = ReadonlyMap<number, number | null>;

export type Mutes = ReturnType<typeof createMutes>;

export function createMutes({ db }: StoreContext, chats: Pick<Chats, 'find'>) {
  return {
    /**
     * Returns the muted chats among the given chats. Returns none while Postgres is unreachable, so that the chat list
     * is still shown.
     */
    async of(user: number, ids: readonly number[]): Promise<MutedChats> {
      try {
        return new Map((await loadMutes(db, user, ids)).map(({ chat_id, until }) => [chat_id, until]));
      } catch (error) {
        if (error instanceof ApiError && error.kind === 'unavailable') return new Map();
        throw error;
      }
    },
    /**
     * Mutes a chat until a time in Unix seconds, or forever if null. Errors: `chat_not_found`, `unavailable`.
     */
    async set(user: number, chat: ChatRef, until: number | null) {
      if (!(await chats.find(chat))) fail('chat_not_found');
      await putMute(db, user, chat.id, until);
    },
    /** Error: `unavailable`. */
    clear: (user: number, chat: ChatRef) => removeMute(db, user, chat.id),
  };
}

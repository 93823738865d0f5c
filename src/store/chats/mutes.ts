/** Manages muted chats. They are stored only in Postgres and loaded together with the chat list. */
import { ApiError, fail } from '../../errors.js';
import { loadMutes, putMute, removeMute } from '../../postgres/chats/mutes.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Chats } from './chats.js';

/** Maps the person's chat id to the end of the mute (Unix time in seconds), or to null for a mute without end. */
export type MutedChats = ReadonlyMap<number, number | null>;

export type Mutes = ReturnType<typeof createMutes>;

export function createMutes({ db }: StoreContext, chats: Pick<Chats, 'find'>) {
  return {
    /**
     * Returns which of the given chats are muted. Returns none while Postgres is unreachable, so that the chat list can
     * still be shown.
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
     * Mutes a chat until a Unix time in seconds, or forever if `until` is null. Errors: `chat_not_found`,
     * `unavailable`.
     */
    async set(user: number, chat: ChatRef, until: number | null) {
      if (!(await chats.find(chat))) fail('chat_not_found');
      await putMute(db, user, chat.id, until);
    },
    /** Ends the mute of a chat. Error: `unavailable`. */
    clear: (user: number, chat: ChatRef) => removeMute(db, user, chat.id),
  };
}

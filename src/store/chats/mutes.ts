/** Manages muted chats. They are stored only in Postgres and loaded together with the chat list. */
import { ApiError, fail } from '../../errors.js';
import { loadMutes, putMute, removeMute } from '../../postgres/chats/mutes.js';
import { settleArchive } from '../../postgres/chats/places.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Chats } from './chats.js';
import { tellSettings } from './person_hints.js';

/** Maps the id of each muted chat to the end of the mute (Unix time in seconds), or to null for a mute without end. */
export type MutedChats = ReadonlyMap<number, number | null>;

export type Mutes = ReturnType<typeof createMutes>;

export function createMutes(context: StoreContext, chats: Pick<Chats, 'find'>) {
  const { db } = context;
  return {
    /**
     * Returns which of the given chats are muted. While Postgres is unreachable, returns none, so that the chat list
     * can still be shown.
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
     * Mutes a chat until `until` (Unix time in seconds), or forever if it is null. Errors: `chat_not_found`,
     * `unavailable`.
     */
    async set(user: number, chat: ChatRef, until: number | null) {
      const { newest } = (await chats.find(chat)) ?? fail('chat_not_found');
      await db.transaction(async (sql) => {
        await settleArchive(sql, user, chat.id, newest);
        await putMute(sql, user, chat.id, until);
      });
      await tellSettings(context, user, chat);
    },
    /** Ends the mute of a chat. Error: `unavailable`. */
    async clear(user: number, chat: ChatRef) {
      const found = await chats.find(chat);
      await db.transaction(async (sql) => {
        if (found) await settleArchive(sql, user, chat.id, found.newest);
        await removeMute(sql, user, chat.id);
      });
      await tellSettings(context, user, chat);
    },
  };
}

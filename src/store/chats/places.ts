/**
 * Manages which chats a person has pinned and archived. Postgres alone stores this, and it is loaded together with the
 * chat list.
 */
import { ApiError, fail } from '../../errors.js';
import * as rows from '../../postgres/chats/places.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Chats } from './chats.js';
import { tellSettings } from './person_hints.js';

/**
 * Maps a chat id to the chat's place in the person's list. A chat that is not in the map is neither pinned nor
 * archived.
 */
export type ChatPlaces = ReadonlyMap<number, Omit<rows.PlaceRow, 'chat_id'>>;

export type Places = ReturnType<typeof createPlaces>;

/** Returns the rank of a pinned chat, or 0 if the chat is not pinned. The list shows greater ranks first. */
export const pinOf = (places: ChatPlaces, chat: ChatRef): number => places.get(chat.id)?.pin ?? 0;

/**
 * Returns whether a chat is in the archive. `newest` is the id of its newest message. A message that was sent after the
 * chat was archived brings the chat back, unless the chat is muted.
 */
export function isArchived(places: ChatPlaces, chat: ChatRef, newest: number): boolean {
  const { archived_through: through = null, muted = false } = places.get(chat.id) ?? {};
  return through !== null && (muted || newest <= through);
}

export function createPlaces(context: StoreContext, chats: Pick<Chats, 'find'>) {
  const { db } = context;
  return {
    /**
     * Returns the places of the given chats, or of all chats. While Postgres is unreachable, returns none, so that the
     * chat list can still be shown.
     */
    async of(user: number, ids: readonly number[] | null = null): Promise<ChatPlaces> {
      try {
        return new Map((await rows.loadPlaces(db, user, ids)).map((row) => [row.chat_id, row]));
      } catch (error) {
        if (error instanceof ApiError && error.kind === 'unavailable') return new Map();
        throw error;
      }
    },
    /**
     * Pins a chat above the other pinned chats in the person's list, and removes it from the archive. Errors:
     * `chat_not_found`, `too_many_pinned_chats`, `unavailable`.
     */
    async pin(user: number, chat: ChatRef) {
      if (!(await chats.find(chat))) fail('chat_not_found');
      await rows.pinInList(db, user, chat.id, limits.chats_pinned_max);
      await tellSettings(context, user, chat);
    },
    /** Error: `unavailable`. */
    async unpin(user: number, chat: ChatRef) {
      await rows.unpinInList(db, user, chat.id);
      await tellSettings(context, user, chat);
    },
    /** Moves a chat to the person's archive, and unpins the chat. Errors: `chat_not_found`, `unavailable`. */
    async archive(user: number, chat: ChatRef) {
      const { newest } = (await chats.find(chat)) ?? fail('chat_not_found');
      await rows.putInArchive(db, user, chat.id, newest);
      await tellSettings(context, user, chat);
    },
    /** Moves a chat back to the person's list. Error: `unavailable`. */
    async unarchive(user: number, chat: ChatRef) {
      await rows.takeFromArchive(db, user, chat.id);
      await tellSettings(context, user, chat);
    },
  };
}

/**
 * Read marks: the last message that a person has read in each chat. They are stored only in Postgres and only move
 * forward.
 */
import { ApiError, fail } from '../../errors.js';
import { loadReadMarks, setReadMark } from '../../postgres/chats/read_marks.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Chats } from './chats.js';

export interface ReadMarks {
  /** Read marks by the person's chat id; null while Postgres is unreachable: the chat list is then shown without them. */
  of(user: number, chats: readonly number[]): Promise<ReadonlyMap<number, number> | null>;
  /** Marks a chat as read up to a message; at most up to the newest. Errors: `chat_not_found`, `unavailable`. */
  set(user: number, chat: ChatRef, message: number): Promise<void>;
}

export function createReadMarks({ db }: StoreContext, chats: Pick<Chats, 'find'>): ReadMarks {
  return {
    async of(user, ids) {
      try {
        return await loadReadMarks(db, user, ids);
      } catch (error) {
        if (error instanceof ApiError && error.kind === 'unavailable') return null;
        throw error;
      }
    },
    async set(user, chat, message) {
      const { newest } = (await chats.find(chat)) ?? fail('chat_not_found');
      await setReadMark(db, user, chat.id, Math.min(message, newest));
    },
  };
}

/** How far people have read their chats: kept in Postgres alone, where a mark is one row that only moves on. */
import { ApiError, fail } from '../../errors.js';
import { loadReadMarks, setReadMark } from '../../postgres/chats/read_marks.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Chats } from './chats.js';

export interface ReadMarks {
  /** By chat, as the person names it; null while Postgres is away: a list of chats is shown without them. */
  of(user: number, chats: readonly number[]): Promise<ReadonlyMap<number, number> | null>;
  /** The person has read a chat up to a message; beyond the newest counts as the newest. Errors: `chat_not_found`, `unavailable`. */
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

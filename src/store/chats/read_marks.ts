/**
 * Manages read marks. A read mark is the last message that a person has read in a chat. Read marks are stored only in
 * Postgres and never move backward. Each move is reported to the person's event streams.
 */
import { ApiError, fail } from '../../errors.js';
import { loadReadMarks, setReadMark } from '../../postgres/chats/read_marks.js';
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Chats } from './chats.js';
import { tellRead } from './person_hints.js';

export function createReadMarks(context: StoreContext, chats: Pick<Chats, 'find'>) {
  const { db } = context;
  return {
    /**
     * Returns read marks by the person's chat id, or null while Postgres is unreachable. If null, the chat list is
     * shown without read marks.
     */
    async of(user: number, ids: readonly number[]): Promise<ReadonlyMap<number, number> | null> {
      try {
        return await loadReadMarks(db, user, ids);
      } catch (error) {
        if (error instanceof ApiError && error.kind === 'unavailable') return null;
        throw error;
      }
    },
    /**
     * Sets the read mark of a chat to a message. The mark cannot go beyond the newest message. Errors:
     * `chat_not_found`, `unavailable`.
     */
    async set(user: number, chat: ChatRef, message: number) {
      const { newest } = (await chats.find(chat)) ?? fail('chat_not_found');
      const read = Math.min(message, newest);
      if (await setReadMark(db, user, chat.id, read)) await tellRead(context, user, chat, read);
    },
  };
}

/**
 * Manages read marks. A person's read mark in a chat is the last message that the person has read. Read marks are
 * stored only in Postgres and never move backward. Each change is published to the person's event streams.
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
     * Returns a person's read marks by chat id. Returns null while Postgres is unreachable, and the chat list is then
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
     * Sets a person's read mark in a chat to a message, but at most to the newest message. Errors: `chat_not_found`,
     * `unavailable`.
     */
    async set(user: number, chat: ChatRef, message: number) {
      const { newest } = (await chats.find(chat)) ?? fail('chat_not_found');
      const read = Math.min(message, newest);
      if (await setReadMark(db, user, chat.id, read)) await tellRead(context, user, chat, read);
    },
  };
}

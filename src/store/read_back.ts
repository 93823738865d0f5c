/** Filling what a script missed from Postgres, under the ticket that it left. */
import { fail } from '../errors.js';
import { loadMessages } from '../postgres/chats.js';
import type { Chats } from './chats.js';
import type { StoreContext } from './context.js';
import type { ControlCopies } from './control.js';
import { type ChatRef, isDirect } from './keys.js';

export interface ReadBack {
  /** Errors: `chat_not_found`; `cant_initiate` when a bot writes to a person who never started it. */
  chat(chat: ChatRef, ticket: string, forBot: boolean): Promise<void>;
  /** False when Postgres has no such message, or only its tombstone. */
  message(chat: ChatRef, messageId: number, ticket: string): Promise<boolean>;
  member(chat: ChatRef, who: number): Promise<void>;
}

export function createReadBack(context: StoreContext, chats: Chats, control: ControlCopies): ReadBack {
  const { db, scripts, keys, hotTtlMs } = context;
  return {
    async chat(chat, ticket, forBot) {
      if (await chats.fill(chat, ticket)) return;
      const person = forBot && isDirect(chat) && (await control.read('user', chat.user));
      fail(person ? 'cant_initiate' : 'chat_not_found');
    },
    async message(chat, messageId, ticket) {
      const [row] = await loadMessages(db, chat.id, chat.user, [messageId]);
      if (!row?.record) return false;
      const message = keys.message(chat, messageId);
      await scripts.call(
        'messages/fill',
        keys.partitions.of(chat.id),
        { message, ticket: keys.ticket(message) },
        { token: ticket, record: row.record, ttl_ms: hotTtlMs },
      );
      return true;
    },
    async member(chat, who) {
      // Reading through the control copies leaves the copy that the script missed.
      await control.read('member', chat.id, who);
    },
  };
}

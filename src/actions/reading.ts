/** Checks that a person may read a chat. */
import { fail } from '../errors.js';
import { isInChat } from '../rules/rights.js';
import type { Profile } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import { notMember } from '../store/messages/refusals.js';
import type { Store } from '../store/store.js';
import type { Viewer } from '../view/messages.js';
import { chatOfUser } from './compose.js';

/** Returns the chat that a person's call names. Errors: `chat_not_found`, `not_chat_member`. */
export async function readableChat(store: Store, user: User, chatId: number): Promise<ChatRef> {
  const chat = chatOfUser(user.id, chatId);
  if (!isDirect(chat)) {
    const { status } = await store.chats.member(chat, user.id);
    if (!isInChat(status)) {
      const found = await store.chats.find(chat);
      return found ? notMember({ isBot: false }, found.kind) : fail('chat_not_found');
    }
  }
  return chat;
}

/**
 * Returns the viewer object for a person who reads the chat. In a direct chat, the bot's name is in the person's
 * language.
 */
export async function personViewer(store: Store, chat: ChatRef, user: User): Promise<Viewer> {
  const bot: Profile | null = isDirect(chat) ? await store.bots.profile(chat.id, user.languageCode) : null;
  return { isBot: false, bot, person: user.id };
}

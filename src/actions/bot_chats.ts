/** Checks that a bot may read a chat. */
import { type ErrorName, fail } from '../errors.js';
import { isInChat } from '../rules/rights.js';
import { type ChatState, userProfile } from '../store/chats/chats.js';
import type { Profile } from '../store/core/codec.js';
import type { Bot } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import { botProfile } from '../store/core/profiles.js';
import { notMember } from '../store/messages/refusals.js';
import type { Store } from '../store/store.js';
import { chatOfBot } from './compose.js';

export const botChatErrors = [
  'chat_id_empty',
  'chat_not_found',
  'not_group_member',
  'not_channel_member',
] as const satisfies readonly ErrorName[];

/**
 * Returns the chat that a bot's call names. Errors: `chat_not_found`, and `not_group_member` or `not_channel_member` if
 * the bot is not in the chat.
 */
export async function botChat(
  store: Store,
  bot: Bot,
  chatId: number | string,
): Promise<{ readonly chat: ChatRef; readonly found: ChatState }> {
  const chat = chatOfBot(bot.id, chatId);
  const found = (await store.chats.find(chat)) ?? fail('chat_not_found');
  if (isDirect(chat)) return { chat, found };
  const { status } = await store.chats.member(chat, bot.id);
  if (!isInChat(status)) notMember({ isBot: true }, found.kind);
  return { chat, found };
}

/** Returns the profile of the person or bot with this id, or null if the id is unknown. */
export async function profileOf(store: Store, id: number): Promise<Profile | null> {
  const user = await store.users.find(id);
  if (user) return userProfile(user);
  const bot = await store.bots.find(id);
  return bot && botProfile(bot);
}

/** Finds the person whose menu button a call is about. */
import { type ErrorName, fail } from '../errors.js';
import type { Bot } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import { botChat } from './bot_chats.js';

export const menuButtonErrors = ['chat_id_invalid', 'chat_not_found'] as const satisfies readonly ErrorName[];

/**
 * Returns the person whose direct chat with the bot the call names, or null if the call has no chat id. Errors:
 * `menuButtonErrors`.
 */
export async function menuButtonChat(
  store: Store,
  bot: Bot,
  chat_id: number | undefined,
): Promise<number | null> {
  if (chat_id === undefined) return null;
  if (chat_id <= 0) fail('chat_id_invalid');
  await botChat(store, bot, chat_id);
  return chat_id;
}

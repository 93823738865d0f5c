import { z } from 'zod';
import { botSender, chatErrors, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { chatId, messageId } from '../../wire/schema.js';

/**
 * Deletes a message that is at most 48 hours old. In a direct chat, the bot may delete any message. In other chats, it
 * may delete its own messages, or any message if it has the right to delete.
 */
export const deleteMessage = defineMethod({
  name: 'deleteMessage',
  effect: 'change',
  summary: 'Deletes a message.',
  params: z.object({ chat_id: chatId, message_id: messageId }),
  errors: [...chatErrors, 'message_to_delete_not_found', 'message_cant_be_deleted'],
  handler: ({ bot, store }, p) =>
    store.messages.remove(chatOfBot(bot.id, p.chat_id), botSender(bot), p.message_id),
});

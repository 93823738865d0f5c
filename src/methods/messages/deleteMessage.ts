import { z } from 'zod';
import { botSender, chatErrors, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { chatId, messageId } from '../../wire/schema.js';

/**
 * Deletes a message up to 48 hours old: any in a direct chat; elsewhere the bot's own, or any with the right to delete.
 */
export const deleteMessage = defineMethod({
  name: 'deleteMessage',
  effect: 'change',
  summary: 'Deletes a message.',
  params: z.object({ chat_id: chatId, message_id: messageId }),
  errors: [...chatErrors, 'message_to_delete_not_found', 'message_cant_be_deleted'],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.messages.remove(chatOfBot(bot.id, p.chat_id), botSender(bot), p.message_id);
    return true;
  },
});

import { z } from 'zod';
import { botSender, chatErrors, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { chatId, messageIds } from '../../wire/schema.js';

/**
 * Deletes up to 100 messages in one script. Skips missing messages. Deletes nothing if the bot may not delete one of
 * them.
 */
export const deleteMessages = defineMethod({
  name: 'deleteMessages',
  effect: 'change',
  summary:
    'Deletes up to 100 messages. If the bot may not delete one of the messages, deletes none of them. Skips messages that do not exist.',
  params: z.object({ chat_id: chatId, message_ids: messageIds }),
  errors: [...chatErrors, 'message_ids_empty', 'too_many_message_ids', 'message_cant_be_deleted'],
  handler: ({ bot, store }, p) =>
    store.messages.removeMany(chatOfBot(bot.id, p.chat_id), botSender(bot), p.message_ids),
});

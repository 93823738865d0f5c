import { z } from 'zod';
import { botSender, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { chatId, messageIds } from '../../wire/schema.js';

/** Deletes up to 100 messages in one script. Skips missing ones; if one may not be deleted, deletes none. */
export const deleteMessages = defineMethod({
  name: 'deleteMessages',
  effect: 'change',
  summary: 'Deletes up to 100 messages, all or none. Missing ones are skipped.',
  params: z.object({ chat_id: chatId, message_ids: messageIds }),
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'cant_initiate',
    'not_group_member',
    'not_channel_member',
    'message_ids_empty',
    'too_many_message_ids',
    'message_cant_be_deleted',
  ],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.messages.removeMany(chatOfBot(bot.id, p.chat_id), botSender(bot), p.message_ids);
    return true;
  },
});

import { z } from 'zod';
import { botSender, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { chatId, messageId, optional } from '../../wire/schema.js';

/** Unpins a message; without `message_id`, the pinned one (interface §4.3.4). */
export const unpinChatMessage = defineMethod({
  name: 'unpinChatMessage',
  effect: 'change',
  summary: 'Unpins the pinned message of a chat.',
  params: z.object({ chat_id: chatId, message_id: optional(messageId) }),
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'cant_initiate',
    'not_group_member',
    'not_channel_member',
    'pin_not_allowed',
    'message_to_unpin_not_found',
  ],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.pins.unpin(chatOfBot(bot.id, p.chat_id), botSender(bot), p.message_id ?? null);
    return true;
  },
});

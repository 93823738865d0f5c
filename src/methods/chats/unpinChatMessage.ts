import { z } from 'zod';
import { botSender, chatErrors, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { chatId, messageId, optional } from '../../wire/schema.js';

/** Unpins a message. Without `message_id`, unpins the currently pinned message (interface §4.3.4). */
export const unpinChatMessage = defineMethod({
  name: 'unpinChatMessage',
  effect: 'change',
  summary: 'Unpins the pinned message in a chat.',
  params: z.object({ chat_id: chatId, message_id: optional(messageId) }),
  errors: [...chatErrors, 'pin_not_allowed', 'message_to_unpin_not_found'],
  handler: ({ bot, store }, p) =>
    store.pins.unpin(chatOfBot(bot.id, p.chat_id), botSender(bot), p.message_id ?? null),
});

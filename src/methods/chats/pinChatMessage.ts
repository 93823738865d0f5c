import { z } from 'zod';
import { botSender, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { boolean, chatId, messageId, optional } from '../../wire/schema.js';

/** Pins a message and unpins the previously pinned one (interface §3, §5.11; behaviour §5). */
export const pinChatMessage = defineMethod({
  name: 'pinChatMessage',
  effect: 'grow',
  summary: 'Pins a message in a chat.',
  params: z.object({ chat_id: chatId, message_id: messageId, disable_notification: optional(boolean) }),
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'cant_initiate',
    'bot_blocked',
    'not_group_member',
    'not_channel_member',
    'pin_not_allowed',
    'message_to_pin_not_found',
    'service_cant_be_pinned',
  ],
  handler: async ({ bot, store }, p) => {
    const chat = chatOfBot(bot.id, p.chat_id);
    await store.pins.pin(chat, botSender(bot), p.message_id, p.disable_notification !== true);
  },
});

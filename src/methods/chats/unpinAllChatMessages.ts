import { z } from 'zod';
import { botSender, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

/** Unpins all messages. A chat without a pinned message is not an error (behaviour §5). */
export const unpinAllChatMessages = defineMethod({
  name: 'unpinAllChatMessages',
  effect: 'change',
  summary: 'Unpins every message of a chat.',
  params: z.object({ chat_id: chatId }),
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'cant_initiate',
    'not_group_member',
    'not_channel_member',
    'pin_not_allowed',
  ],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.pins.unpinAll(chatOfBot(bot.id, p.chat_id), botSender(bot));
    return true;
  },
});

import { z } from 'zod';
import { botSender, chatErrors, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { chatId } from '../../wire/schema.js';

/** Unpins all messages. Also succeeds if the chat has no pinned message (behaviour §5). */
export const unpinAllChatMessages = defineMethod({
  name: 'unpinAllChatMessages',
  effect: 'change',
  summary: 'Unpins every message in a chat.',
  params: z.object({ chat_id: chatId }),
  errors: [...chatErrors, 'pin_not_allowed'],
  handler: ({ bot, store }, p) => store.pins.unpinAll(chatOfBot(bot.id, p.chat_id), botSender(bot)),
});

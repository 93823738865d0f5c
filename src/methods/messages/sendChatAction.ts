import { z } from 'zod';
import { botSender, chatErrors, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { chatAction } from '../../wire/chat_actions.js';
import { chatId } from '../../wire/schema.js';

export const sendChatAction = defineMethod({
  name: 'sendChatAction',
  effect: 'grow',
  summary: 'Shows a chat action such as “typing”.',
  params: z.object({ chat_id: chatId, action: chatAction }),
  errors: [...chatErrors, 'bot_blocked', 'chat_action_invalid'],
  handler: async ({ bot, store }, p) => {
    await store.messages.showAction(chatOfBot(bot.id, p.chat_id), botSender(bot), p.action);
  },
});

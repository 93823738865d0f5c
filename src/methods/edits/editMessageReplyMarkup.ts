import { z } from 'zod';
import { botSender, chatErrors, chatOfBot, inlineKeyboardErrors, keyboard } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { message } from '../../wire/results.js';
import { chatId, messageId, replyMarkup } from '../../wire/schema.js';

/** Replaces the inline keyboard and keeps the text (interface §4.3). Without `reply_markup`, removes the keyboard. */
export const editMessageReplyMarkup = defineMethod({
  name: 'editMessageReplyMarkup',
  effect: 'grow',
  summary: 'Replaces the inline keyboard of a message.',
  params: z.object({ chat_id: chatId, message_id: messageId, reply_markup: replyMarkup }),
  errors: [
    ...chatErrors,
    'message_to_edit_not_found',
    'message_cant_be_edited',
    'message_not_modified',
    ...inlineKeyboardErrors,
  ],
  result: message,
  handler: async ({ bot, store }, p) => {
    const editor = botSender(bot);
    const edited = await store.messages.edit(chatOfBot(bot.id, p.chat_id), editor, p.message_id, {
      what: 'markup',
      markup: keyboard(p.reply_markup),
    });
    return viewMessage(edited, { isBot: true, bot: editor.profile });
  },
});

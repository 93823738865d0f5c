import { z } from 'zod';
import { botSender, chatErrors, chatOfBot, inlineKeyboardErrors, keyboard } from '../../actions/compose.js';
import { editsInline } from '../../actions/inline_edits.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { editedMessage } from '../../wire/results.js';
import { chatId, messageId, replyMarkup } from '../../wire/schema.js';

/**
 * Replaces a message's inline keyboard and keeps its text (interface §4.3). Without `reply_markup`, removes the
 * keyboard.
 */
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
    'inline_message_invalid',
  ],
  result: editedMessage,
  ofInline: editsInline({ reply_markup: replyMarkup }, (_, p) => ({
    what: 'markup',
    markup: keyboard(p.reply_markup),
  })),
  handler: async ({ bot, store }, p) => {
    const editor = botSender(bot);
    const edited = await store.messages.edit(chatOfBot(bot.id, p.chat_id), editor, p.message_id, {
      what: 'markup',
      markup: keyboard(p.reply_markup),
    });
    return viewMessage(edited, { isBot: true, bot: editor.profile }, store.time);
  },
});

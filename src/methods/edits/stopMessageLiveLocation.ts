import { z } from 'zod';
import { botSender, chatErrors, chatOfBot, inlineKeyboardErrors, keyboard } from '../../actions/compose.js';
import { editsInline } from '../../actions/inline_edits.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { editedMessage } from '../../wire/results.js';
import { chatId, messageId, replyMarkup } from '../../wire/schema.js';

/** Ends a live location early. Without `reply_markup`, removes the keyboard. */
export const stopMessageLiveLocation = defineMethod({
  name: 'stopMessageLiveLocation',
  effect: 'grow',
  summary: 'Ends a live location. The message keeps showing the last position.',
  params: z.object({ chat_id: chatId, message_id: messageId, reply_markup: replyMarkup }),
  errors: [
    ...chatErrors,
    'bot_blocked',
    'message_to_edit_not_found',
    'message_cant_be_edited',
    'no_live_location_to_edit',
    ...inlineKeyboardErrors,
    'inline_message_invalid',
  ],
  result: editedMessage,
  ofInline: editsInline({ reply_markup: replyMarkup }, (_, p) => ({
    what: 'location',
    content: null,
    markup: keyboard(p.reply_markup),
  })),
  handler: async ({ bot, store }, p) => {
    const editor = botSender(bot);
    const edited = await store.messages.edit(chatOfBot(bot.id, p.chat_id), editor, p.message_id, {
      what: 'location',
      content: null,
      markup: keyboard(p.reply_markup),
    });
    return viewMessage(edited, { isBot: true, bot: editor.profile }, store.time);
  },
});

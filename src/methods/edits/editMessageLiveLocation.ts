import { z } from 'zod';
import { botSender, chatErrors, chatOfBot, inlineKeyboardErrors, keyboard } from '../../actions/compose.js';
import { editsInline } from '../../actions/inline_edits.js';
import { liveEditParams, liveErrors, liveLocationOf, locationParams } from '../../actions/send_object.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { editedMessage } from '../../wire/results.js';
import { chatId, messageId, replyMarkup } from '../../wire/schema.js';

const content = { ...locationParams, ...liveEditParams, reply_markup: replyMarkup };

const editOf = (p: z.output<z.ZodObject<typeof content>>) =>
  ({
    what: 'location',
    content: { object: liveLocationOf(p, 0) },
    markup: keyboard(p.reply_markup),
  }) as const;

/**
 * Moves a live location (behaviour §7). Without `live_period`, keeps the period. Without `reply_markup`, removes the
 * keyboard.
 */
export const editMessageLiveLocation = defineMethod({
  name: 'editMessageLiveLocation',
  effect: 'grow',
  summary: 'Moves a live location. Without `live_period`, the end of the live location does not change.',
  params: z.object({ chat_id: chatId, message_id: messageId, ...content }),
  errors: [
    ...chatErrors,
    'bot_blocked',
    'message_to_edit_not_found',
    'message_cant_be_edited',
    'no_live_location_to_edit',
    ...liveErrors,
    'message_not_modified',
    ...inlineKeyboardErrors,
    'inline_message_invalid',
  ],
  result: editedMessage,
  ofInline: editsInline(content, (_, p) => editOf(p)),
  handler: async ({ bot, store }, p) => {
    const editor = botSender(bot);
    const edited = await store.messages.edit(chatOfBot(bot.id, p.chat_id), editor, p.message_id, editOf(p));
    return viewMessage(edited, { isBot: true, bot: editor.profile }, store.time);
  },
});

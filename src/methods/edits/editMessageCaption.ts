import { z } from 'zod';
import {
  botSender,
  captionContent,
  chatErrors,
  chatOfBot,
  inlineKeyboardErrors,
  keyboard,
} from '../../actions/compose.js';
import { editsInline } from '../../actions/inline_edits.js';
import { captionAbove } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { editedMessage } from '../../wire/results.js';
import { chatId, entities, messageId, optional, parseMode, replyMarkup, text } from '../../wire/schema.js';

const content = {
  caption: optional(text),
  parse_mode: parseMode,
  caption_entities: entities,
  show_caption_above_media: captionAbove,
  reply_markup: replyMarkup,
};

/**
 * Replaces a message's caption and keeps its media (interface §4.3). Without `caption`, removes the caption. Without
 * `reply_markup`, removes the keyboard, as `editMessageText` does.
 */
export const editMessageCaption = defineMethod({
  name: 'editMessageCaption',
  effect: 'grow',
  summary: 'Replaces the caption and the inline keyboard of a media message.',
  params: z.object({ chat_id: chatId, message_id: messageId, ...content }),
  errors: [
    ...chatErrors,
    'message_to_edit_not_found',
    'message_cant_be_edited',
    'no_caption_to_edit',
    'message_not_modified',
    'caption_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    'entities_too_long',
    ...inlineKeyboardErrors,
    'inline_message_invalid',
  ],
  result: editedMessage,
  ofInline: editsInline(content, async ({ store }, p, writer) => ({
    what: 'caption',
    content: await captionContent(store, writer, p),
    markup: keyboard(p.reply_markup),
  })),
  handler: async ({ bot, store }, p) => {
    const editor = botSender(bot);
    const chat = chatOfBot(bot.id, p.chat_id);
    const edited = await store.messages.edit(chat, editor, p.message_id, {
      what: 'caption',
      content: await captionContent(store, { id: bot.id, isBot: true, chat }, p),
      markup: keyboard(p.reply_markup),
    });
    return viewMessage(edited, { isBot: true, bot: editor.profile }, store.time);
  },
});

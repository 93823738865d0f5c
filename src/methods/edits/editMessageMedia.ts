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
import { takeMedia, thumbnailErrors } from '../../actions/media.js';
import { mediaDescriptor, withDescribed } from '../../actions/send_media.js';
import { mediaOf } from '../../files/file_id.js';
import { defineMethod } from '../../server/method.js';
import { noFiles } from '../../server/params.js';
import { viewMessage } from '../../view/messages.js';
import { editedMessage } from '../../wire/results.js';
import { chatId, messageId, replyMarkup } from '../../wire/schema.js';

const content = {
  media: mediaDescriptor.describe('The new media and caption'),
  reply_markup: replyMarkup,
};

/**
 * Replaces a message's media and caption. The new media may be of any kind (interface §4.3.5). Without `reply_markup`,
 * removes the keyboard.
 */
export const editMessageMedia = defineMethod({
  name: 'editMessageMedia',
  effect: 'grow',
  summary: 'Replaces the media, caption and inline keyboard of a message.',
  params: z.object({ chat_id: chatId, message_id: messageId, ...content }),
  errors: [
    ...chatErrors,
    'message_to_edit_not_found',
    'message_cant_be_edited',
    'media_cant_be_edited',
    'sending_not_permitted',
    'message_not_modified',
    'caption_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    'entities_too_long',
    ...inlineKeyboardErrors,
    'wrong_file_id',
    'file_type_mismatch',
    'file_empty',
    'photo_invalid',
    ...thumbnailErrors,
    'too_much_stored',
    'inline_message_invalid',
  ],
  result: editedMessage,
  // An inline message accepts no upload, as in the reference server. The media must be a URL or a `file_id`.
  ofInline: editsInline(content, async (context, { media, reply_markup }, writer) => {
    const markup = keyboard(reply_markup);
    const words = await captionContent(context.store, writer, media);
    const { file } = await takeMedia(
      { ...context, uploads: noFiles },
      media.type,
      'media',
      media.media,
      media,
    );
    return {
      what: 'media',
      content: { ...words, media: mediaOf(context.files, file, media.has_spoiler) },
      markup,
    };
  }),
  handler: async (context, { media, ...p }) => {
    const { bot, store } = context;
    const editor = botSender(bot);
    const chat = chatOfBot(bot.id, p.chat_id);
    const markup = keyboard(p.reply_markup);
    const words = await captionContent(store, { id: bot.id, isBot: true, chat }, media);
    const edited = await withDescribed(context, media, words, (make) =>
      store.messages.edit(chat, editor, p.message_id, async () => ({
        what: 'media',
        content: await make(),
        markup,
      })),
    );
    return viewMessage(edited, { isBot: true, bot: editor.profile }, store.time);
  },
});

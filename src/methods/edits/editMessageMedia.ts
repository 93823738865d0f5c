import { z } from 'zod';
import {
  botSender,
  captionContent,
  chatErrors,
  chatOfBot,
  keyboard,
  keyboardErrors,
} from '../../api/compose.js';
import { takeMedia, withMedia } from '../../api/media.js';
import { defineMethod } from '../../api/method.js';
import { message } from '../../api/results.js';
import { boolean, chatId, json, messageId, optional, replyMarkup, text } from '../../api/schema.js';
import { amount, captionParams } from '../../api/send_media.js';
import { mediaOf } from '../../files/file_id.js';
import { mediaTypes } from '../../store/codec.js';
import { viewMessage } from '../../view/messages.js';

/** The media descriptor (interface §2). `media` is a URL, a `file_id`, or `attach://<name>` of an uploaded part. */
const descriptor = json(
  z.object(
    {
      type: z.enum(mediaTypes, { error: `one of: ${mediaTypes.join(', ')}` }),
      media: text,
      ...captionParams,
      has_spoiler: optional(boolean),
      ...{ width: amount, height: amount, duration: amount },
      ...{ performer: optional(text), title: optional(text) },
    },
    { error: 'a media descriptor' },
  ),
);

/** Replaces media with their caption entirely, by media of any kind (interface §4.3.5). Without a keyboard it is removed. */
export const editMessageMedia = defineMethod({
  name: 'editMessageMedia',
  summary: 'Replaces the media of a message with their caption, and its inline keyboard.',
  params: z.object({
    chat_id: chatId,
    message_id: messageId,
    media: descriptor.describe('What replaces the media and their caption'),
    reply_markup: replyMarkup,
  }),
  errors: [
    ...chatErrors,
    'message_to_edit_not_found',
    'message_cant_be_edited',
    'media_cant_be_edited',
    'message_not_modified',
    'caption_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    ...keyboardErrors,
    'wrong_file_id',
    'file_type_mismatch',
    'file_empty',
    'photo_invalid',
  ],
  result: message,
  handler: async (context, { media, ...p }) => {
    const { bot, store, files } = context;
    const editor = botSender(bot);
    const chat = chatOfBot(bot.id, p.chat_id);
    const markup = keyboard(p.reply_markup);
    const words = await captionContent(store, media);
    const edited = await withMedia(
      context,
      () => takeMedia(context, media.type, 'media', media.media, media),
      (take) =>
        store.messages.edit(chat, editor, p.message_id, async () => ({
          what: 'media',
          content: { ...words, media: mediaOf(files, (await take()).file, media.has_spoiler) },
          markup,
        })),
    );
    return viewMessage(edited, { isBot: true, bot: editor.profile });
  },
});

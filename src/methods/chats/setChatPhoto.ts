import { z } from 'zod';
import { botChat, botChatErrors } from '../../actions/bot_chats.js';
import { putChatPhoto } from '../../actions/chat_info.js';
import { pictureErrors } from '../../actions/pictures.js';
import { fail } from '../../errors.js';
import { defineMethod, type MethodContext } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { done } from '../../wire/results.js';
import { chatId, optional, text } from '../../wire/schema.js';

const attached = 'attach://';

function uploadOf({ uploads }: MethodContext, given: string | undefined) {
  if (given === undefined) return uploads.get('photo') ?? fail('no_photo');
  if (!given.startsWith(attached)) return fail('photo_not_uploaded');
  return uploads.get(given.slice(attached.length)) ?? fail('photo_not_uploaded');
}

/** Sets the photo of a chat. It is cropped to a circle and stored as WebP. */
export const setChatPhoto = defineMethod({
  name: 'setChatPhoto',
  effect: 'configure',
  summary: 'Sets the photo of a group or channel.',
  params: z.object({
    chat_id: chatId,
    photo: optional(text).describe(
      'Uploaded file: PNG, JPEG or WebP up to 10 MiB. A `file_id` is not accepted',
    ),
  }),
  errors: [
    ...botChatErrors,
    'private_chat_photo',
    'no_photo',
    'photo_not_uploaded',
    'photo_not_allowed',
    ...pictureErrors,
    'picture_too_small',
    'too_much_stored',
  ],
  result: done,
  handler: async (context, p) => {
    const { bot, store } = context;
    const { chat } = await botChat(store, bot, p.chat_id);
    if (isDirect(chat)) fail('private_chat_photo');
    const { bytes } = uploadOf(context, p.photo);
    await putChatPhoto(context, chat, { id: bot.id, is_bot: true }, bot.owner, bytes);
    return true;
  },
});

import { z } from 'zod';
import { takeMedia } from '../../actions/media.js';
import { media } from '../../actions/send_media.js';
import {
  checkStickerUser,
  inputStickerErrors,
  stickerFormat,
  stickerUser,
} from '../../actions/sticker_sets.js';
import { fail } from '../../errors.js';
import { viewFileInfo } from '../../files/file_path.js';
import { defineMethod } from '../../server/method.js';
import { fileInfo } from '../../wire/results.js';

/** Stores a file for later use in a set. Returns a File, whose `file_id` the methods for sets accept. */
export const uploadStickerFile = defineMethod({
  name: 'uploadStickerFile',
  effect: 'grow',
  summary: 'Uploads a file that can then be added to a set of stickers.',
  params: z.object({
    user_id: stickerUser,
    sticker: media.describe('An uploaded PNG or WebP'),
    sticker_format: stickerFormat,
  }),
  errors: [...inputStickerErrors, 'sticker_user_not_found'],
  result: fileInfo,
  handler: async (context, p) => {
    const { bot, store, files } = context;
    await checkStickerUser(store, bot, p.user_id);
    if (p.sticker !== undefined && !p.sticker.startsWith('attach:')) fail('wrong_file_id');
    const { file } = await takeMedia(context, 'sticker', 'sticker', p.sticker);
    return viewFileInfo(files, file);
  },
});

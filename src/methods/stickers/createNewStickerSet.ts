import { z } from 'zod';
import {
  changeWithStickers,
  checkSetName,
  checkStickerUser,
  inputStickerErrors,
  inputStickers,
  setTitle,
  stickerUser,
} from '../../actions/sticker_sets.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { answer, boolean, optional, text } from '../../wire/schema.js';

/** Creates a set that only this bot can change (behaviour §4). */
export const createNewStickerSet = defineMethod({
  name: 'createNewStickerSet',
  effect: 'configure',
  summary: 'Creates a set of stickers.',
  params: z.object({
    user_id: stickerUser,
    name: text.describe(
      'Name of 1 to 64 Latin letters, digits and `_`, which ends in `_by_<username of the bot>`',
    ),
    title: setTitle,
    stickers: inputStickers,
    sticker_type: optional(
      text.refine((given) => given === 'regular', { error: answer('sticker_type_unsupported') }),
    ).describe('Only `regular`'),
    needs_repainting: optional(boolean).describe('Without effect'),
  }),
  errors: [
    ...inputStickerErrors,
    'sticker_user_not_found',
    'sticker_set_name_invalid',
    'sticker_set_name_taken',
    'sticker_set_title_invalid',
    'sticker_type_unsupported',
    'stickers_empty',
    'too_many_stickers',
    'too_many_sticker_sets',
    'sticker_in_set',
  ],

  handler: async (context, { user_id, name, title, stickers }) => {
    const { bot, store } = context;
    await changeWithStickers(context, {
      stickers,
      async check() {
        checkSetName(bot, name);
        await checkStickerUser(store, bot, user_id);
        // Refuses a set in which two stickers use the same upload, because the upload would be stored twice.
        if (new Set(stickers.map(({ sticker }) => sticker)).size < stickers.length) fail('sticker_in_set');
        await store.stickerSets.checkNew(bot.id, name);
      },
      make(made) {
        if (new Set(made.map(({ key }) => key)).size < made.length) fail('sticker_in_set');
        return store.stickerSets.add({ bot: bot.id, name, title, stickers: made });
      },
    });
  },
});

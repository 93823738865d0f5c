import { z } from 'zod';
import {
  changeWithStickers,
  checkStickerUser,
  inputSticker,
  inputStickerErrors,
  placeOfSticker,
  setName,
  stickerId,
  stickerOfSetErrors,
  stickerUser,
} from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';
import type { SetSticker } from '../../store/bots/sticker_sets.js';

/** Replaces a sticker with a new one at the same position. */
export const replaceStickerInSet = defineMethod({
  name: 'replaceStickerInSet',
  effect: 'configure',
  summary: 'Replaces a sticker in a set.',
  params: z.object({ user_id: stickerUser, name: setName, old_sticker: stickerId, sticker: inputSticker }),
  errors: [...inputStickerErrors, ...stickerOfSetErrors, 'sticker_user_not_found', 'sticker_in_set'],

  handler: async (context, p) => {
    const { bot, store, files } = context;
    const { key } = placeOfSticker(files, p.old_sticker);
    await changeWithStickers(context, {
      stickers: [p.sticker],
      async check() {
        await checkStickerUser(store, bot, p.user_id);
        await store.stickerSets.checkChange(bot.id, p.name, key);
      },
      make: ([made]) => store.stickerSets.replace(bot.id, p.name, key, made as SetSticker),
    });
  },
});

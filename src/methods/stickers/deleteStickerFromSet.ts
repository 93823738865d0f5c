import { z } from 'zod';
import { placeOfSticker, stickerId, stickerOfSetErrors } from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';

/** Removes a sticker from its set. Messages with the sticker still show it. */
export const deleteStickerFromSet = defineMethod({
  name: 'deleteStickerFromSet',
  effect: 'configure',
  summary: 'Removes a sticker from its set.',
  params: z.object({ sticker: stickerId }),
  errors: [...stickerOfSetErrors],

  handler: async ({ bot, store, files }, p) => {
    const { set, key } = placeOfSticker(files, p.sticker);
    await store.stickerSets.take(bot.id, set, key);
  },
});

import { z } from 'zod';
import { keywords, placeOfSticker, stickerId, stickerOfSetErrors } from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';

/** Changes the keywords of a sticker. Without `keywords`, removes all keywords. */
export const setStickerKeywords = defineMethod({
  name: 'setStickerKeywords',
  effect: 'configure',
  summary: 'Changes the keywords of a sticker in a set.',
  params: z.object({ sticker: stickerId, keywords }),
  errors: [...stickerOfSetErrors, 'sticker_keywords_invalid'],

  handler: async ({ bot, store, files }, p) => {
    const { set, key } = placeOfSticker(files, p.sticker);
    await store.stickerSets.update(bot.id, set, key, { keywords: p.keywords ?? [] });
  },
});

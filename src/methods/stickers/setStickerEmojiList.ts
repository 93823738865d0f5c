import { z } from 'zod';
import { emojiList, placeOfSticker, stickerId, stickerOfSetErrors } from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';

/** Changes the emoji of a sticker. Messages that are sent later with this sticker show the first emoji. */
export const setStickerEmojiList = defineMethod({
  name: 'setStickerEmojiList',
  effect: 'configure',
  summary: 'Changes the emoji of a sticker in a set.',
  params: z.object({ sticker: stickerId, emoji_list: emojiList }),
  errors: [...stickerOfSetErrors, 'sticker_emoji_invalid'],

  handler: async ({ bot, store, files }, p) => {
    const { set, key } = placeOfSticker(files, p.sticker);
    await store.stickerSets.update(bot.id, set, key, { emoji: p.emoji_list });
  },
});

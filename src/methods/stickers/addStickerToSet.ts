import { z } from 'zod';
import {
  changeWithStickers,
  checkStickerUser,
  inputSticker,
  inputStickerErrors,
  setErrors,
  setName,
  stickerUser,
} from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';
import type { SetSticker } from '../../store/bots/sticker_sets.js';

/** Adds a sticker to the end of one of this bot's sets. */
export const addStickerToSet = defineMethod({
  name: 'addStickerToSet',
  effect: 'configure',
  summary: 'Adds a sticker to a set.',
  params: z.object({ user_id: stickerUser, name: setName, sticker: inputSticker }),
  errors: [
    ...inputStickerErrors,
    ...setErrors,
    'sticker_user_not_found',
    'too_many_stickers',
    'sticker_in_set',
  ],

  handler: async (context, p) => {
    const { bot, store } = context;
    await changeWithStickers(context, {
      stickers: [p.sticker],
      async check() {
        await checkStickerUser(store, bot, p.user_id);
        await store.stickerSets.checkChange(bot.id, p.name);
      },
      make: ([made]) => store.stickerSets.append(bot.id, p.name, made as SetSticker),
    });
  },
});

import { z } from 'zod';
import { setErrors, setName } from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';

/** Deletes one of this bot's sets. Messages still show the stickers that were sent from the set. */
export const deleteStickerSet = defineMethod({
  name: 'deleteStickerSet',
  effect: 'configure',
  summary: 'Deletes a set of stickers.',
  params: z.object({ name: setName }),
  errors: [...setErrors],

  handler: ({ bot, store }, { name }) => store.stickerSets.remove(bot.id, name),
});

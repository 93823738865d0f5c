import { z } from 'zod';
import { setErrors, setName, viewStickerSet } from '../../actions/sticker_sets.js';
import { stickerSet } from '../../content/sticker.js';
import { defineMethod } from '../../server/method.js';

/** Returns a set of stickers. Any bot may read any set. */
export const getStickerSet = defineMethod({
  name: 'getStickerSet',
  effect: 'read',
  summary: 'Returns a set of stickers.',
  params: z.object({ name: setName }),
  errors: [...setErrors],
  result: stickerSet,
  handler: async ({ store, files }, { name }) => viewStickerSet(files, await store.stickerSets.find(name)),
});

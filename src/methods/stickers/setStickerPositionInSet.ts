import { z } from 'zod';
import { placeOfSticker, stickerId, stickerOfSetErrors } from '../../actions/sticker_sets.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineMethod } from '../../server/method.js';
import { clampedInteger } from '../../wire/schema.js';

/** Moves a sticker within its set. */
export const setStickerPositionInSet = defineMethod({
  name: 'setStickerPositionInSet',
  effect: 'configure',
  summary: 'Moves a sticker within its set.',
  params: z.object({
    sticker: stickerId,
    position: clampedInteger(0, limits.stickers_per_set_max).describe(
      'New position, from 0. Clamped to the positions of the set',
    ),
  }),
  errors: [...stickerOfSetErrors],

  handler: async ({ bot, store, files }, p) => {
    const { set, key } = placeOfSticker(files, p.sticker);
    await store.stickerSets.move(bot.id, set, key, p.position);
  },
});

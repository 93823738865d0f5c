import { z } from 'zod';
import { placeOfSticker, stickerId, stickerOfSetErrors } from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';
import { integer } from '../../wire/schema.js';

const place = 'an integer of at least 0';

export const setStickerPositionInSet = defineMethod({
  name: 'setStickerPositionInSet',
  effect: 'configure',
  summary: 'Moves a sticker within its set.',
  params: z.object({
    sticker: stickerId,
    position: integer(place)
      .refine((given) => given >= 0, { error: place })
      .describe('New position, from 0. A position behind the last sticker counts as the last one'),
  }),
  errors: [...stickerOfSetErrors],

  handler: async ({ bot, store, files }, p) => {
    const { set, key } = placeOfSticker(files, p.sticker);
    await store.stickerSets.move(bot.id, set, key, p.position);
  },
});

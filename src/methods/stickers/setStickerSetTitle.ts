import { z } from 'zod';
import { setErrors, setName, setTitle } from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';

/** Changes the title of one of this bot's sets. */
export const setStickerSetTitle = defineMethod({
  name: 'setStickerSetTitle',
  effect: 'configure',
  summary: 'Changes the title of a set of stickers.',
  params: z.object({ name: setName, title: setTitle }),
  errors: [...setErrors, 'sticker_set_title_invalid'],

  handler: ({ bot, store }, { name, title }) => store.stickerSets.setTitle(bot.id, name, title),
});

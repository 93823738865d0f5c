import { z } from 'zod';
import { languageCode, shortDescriptionText } from '../../api/identity_texts.js';
import { defineMethod } from '../../api/method.js';
import { done } from '../../api/results.js';

/** Sets the small text on the bot's page (interface §4.3, §8). */
export const setMyShortDescription = defineMethod({
  name: 'setMyShortDescription',
  summary: 'Sets the short description of the bot, for one language or as the default; an empty one removes.',
  params: z.object({ short_description: shortDescriptionText, language_code: languageCode }),
  errors: ['short_description_too_long', 'language_invalid'],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.bots.setTexts(bot.id, {
      short_description: { [p.language_code ?? '']: p.short_description },
    });
    return true;
  },
});

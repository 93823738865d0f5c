import { z } from 'zod';
import { languageCode, shortDescriptionText } from '../../actions/identity_texts.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';

/** Sets the short text on the bot's page (interface §4.3, §8). */
export const setMyShortDescription = defineMethod({
  name: 'setMyShortDescription',
  effect: 'configure',
  summary: 'Sets the bot’s short description for a language, or the default. An empty text removes it.',
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

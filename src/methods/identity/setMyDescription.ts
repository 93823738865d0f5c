import { z } from 'zod';
import { descriptionText, languageCode } from '../../api/identity_texts.js';
import { defineMethod } from '../../api/method.js';
import { done } from '../../api/results.js';

/** Sets what people see before they start the bot (interface §4.3, §8). */
export const setMyDescription = defineMethod({
  name: 'setMyDescription',
  summary: 'Sets the description of the bot, for one language or as the default; an empty one removes.',
  params: z.object({ description: descriptionText, language_code: languageCode }),
  errors: ['description_too_long', 'language_invalid'],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.bots.setTexts(bot.id, { description: { [p.language_code ?? '']: p.description } });
    return true;
  },
});

import { z } from 'zod';
import { descriptionText, languageCode } from '../../actions/identity_texts.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';

/** Sets the text that people see before they start the bot (interface §4.3, §8). */
export const setMyDescription = defineMethod({
  name: 'setMyDescription',
  effect: 'configure',
  summary: 'Sets the bot’s description for a language, or the default. An empty text removes it.',
  params: z.object({ description: descriptionText, language_code: languageCode }),
  errors: ['description_too_long', 'language_invalid'],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.bots.setTexts(bot.id, { description: { [p.language_code ?? '']: p.description } });
    return true;
  },
});

import { z } from 'zod';
import { languageCode, shortDescriptionText } from '../../actions/identity_texts.js';
import { defineMethod } from '../../server/method.js';

export const setMyShortDescription = defineMethod({
  name: 'setMyShortDescription',
  effect: 'configure',
  summary:
    'Sets the bot’s short description for a language, or the default short description. An empty text removes the short description.',
  params: z.object({ short_description: shortDescriptionText, language_code: languageCode }),
  errors: ['short_description_too_long', 'language_invalid'],
  handler: ({ bot, store }, p) =>
    store.bots.setTexts(bot.id, {
      short_description: { [p.language_code ?? '']: p.short_description },
    }),
});

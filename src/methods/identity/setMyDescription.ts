import { z } from 'zod';
import { descriptionText, languageCode } from '../../actions/identity_texts.js';
import { defineMethod } from '../../server/method.js';

export const setMyDescription = defineMethod({
  name: 'setMyDescription',
  effect: 'configure',
  summary:
    'Sets the bot’s description for a language, or the default description. An empty text removes the description.',
  params: z.object({ description: descriptionText, language_code: languageCode }),
  errors: ['description_too_long', 'language_invalid'],
  handler: ({ bot, store }, p) =>
    store.bots.setTexts(bot.id, { description: { [p.language_code ?? '']: p.description } }),
});

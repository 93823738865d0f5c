import { z } from 'zod';
import { languageCode, nameText } from '../../actions/identity_texts.js';
import { defineMethod } from '../../server/method.js';

/** Sets the bot's name. After the answer, no node returns the old name any more (interface §4.3, §8). */
export const setMyName = defineMethod({
  name: 'setMyName',
  effect: 'configure',
  summary: 'Sets the bot’s name for a language, or the default name. An empty text removes the name.',
  params: z.object({ name: nameText, language_code: languageCode }),
  errors: ['name_too_long', 'language_invalid'],
  handler: ({ bot, store }, p) => store.bots.setTexts(bot.id, { name: { [p.language_code ?? '']: p.name } }),
});

import { z } from 'zod';
import { languageCode } from '../../actions/identity_texts.js';
import { textIn } from '../../rules/identity_texts.js';
import { defineMethod } from '../../server/method.js';
import { botName } from '../../wire/results.js';

/**
 * Returns the bot's name in the given language. If the bot has no name in this language, returns the default name or
 * the name given at creation (interface §4.3).
 */
export const getMyName = defineMethod({
  name: 'getMyName',
  effect: 'read',
  summary: 'Returns the bot’s name in the given language.',
  params: z.object({ language_code: languageCode }),
  errors: ['language_invalid'],
  result: botName,
  handler: ({ bot }, p) => ({ name: textIn(bot.names, p.language_code, bot.name) }),
});

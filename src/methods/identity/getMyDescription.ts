import { z } from 'zod';
import { languageCode } from '../../actions/identity_texts.js';
import { textIn } from '../../rules/identity_texts.js';
import { defineMethod } from '../../server/method.js';
import { botDescription } from '../../wire/results.js';

/**
 * Returns the description in the given language. If the bot has none in this language, returns the default description
 * or '' (behaviour §2).
 */
export const getMyDescription = defineMethod({
  name: 'getMyDescription',
  effect: 'read',
  summary: 'Returns the bot’s description in the given language.',
  params: z.object({ language_code: languageCode }),
  errors: ['language_invalid'],
  result: botDescription,
  handler: async ({ bot, store }, p) => {
    const { description } = await store.bots.descriptions(bot.id);
    return { description: textIn(description, p.language_code, '') };
  },
});

import { z } from 'zod';
import { languageCode } from '../../actions/identity_texts.js';
import { textIn } from '../../rules/identity_texts.js';
import { defineMethod } from '../../server/method.js';
import { botShortDescription } from '../../wire/results.js';

/**
 * Returns the short description in the given language. If the bot has none in this language, returns the default short
 * description or '' (behaviour §2).
 */
export const getMyShortDescription = defineMethod({
  name: 'getMyShortDescription',
  effect: 'read',
  summary: 'Returns the bot’s short description in the given language.',
  params: z.object({ language_code: languageCode }),
  errors: ['language_invalid'],
  result: botShortDescription,
  handler: async ({ bot, store }, p) => {
    const { shortDescription } = await store.bots.descriptions(bot.id);
    return { short_description: textIn(shortDescription, p.language_code, '') };
  },
});

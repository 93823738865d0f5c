import { z } from 'zod';
import { languageCode } from '../../api/identity_texts.js';
import { defineMethod } from '../../api/method.js';
import { botDescription } from '../../api/results.js';
import { textIn } from '../../rules/identity_texts.js';

/** The description in a language, else the default, else the empty text (behaviour §2). */
export const getMyDescription = defineMethod({
  name: 'getMyDescription',
  summary: 'Returns the bot’s description in a language.',
  params: z.object({ language_code: languageCode }),
  errors: ['language_invalid'],
  result: botDescription,
  handler: async ({ bot, store }, p) => {
    const { description } = await store.bots.descriptions(bot.id);
    return { description: textIn(description, p.language_code, '') };
  },
});

import { z } from 'zod';
import { byLanguage, descriptionText, nameText, shortDescriptionText } from '../../actions/identity_texts.js';
import { ownBot } from '../../actions/own_bot.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { ownedBotSettings } from '../../wire/owner_results.js';

/**
 * Changes a bot's texts, with the same limits and errors as the methods of the bot interface. Texts in other languages
 * stay the same (behaviour §11).
 */
export const updateBot = defineEndpoint({
  verb: 'PATCH',
  path: '/api/me/bots/{bot_id}',
  summary:
    'Sets texts of a bot by language. The key `""` stands for the default language. An empty text removes the text of a language.',
  params: z.object({
    bot_id: botId,
    name: byLanguage(nameText),
    description: byLanguage(descriptionText),
    short_description: byLanguage(shortDescriptionText),
  }),
  errors: [
    'bot_not_found',
    'not_bot_owner',
    'language_invalid',
    'name_too_long',
    'description_too_long',
    'short_description_too_long',
  ],
  result: ownedBotSettings,
  handler: async ({ user, store, files }, { bot_id, ...texts }) => {
    const given = Object.values(texts).some((text) => text !== undefined);
    const bot = given
      ? await store.bots.setOwnTexts(user.id, bot_id, texts)
      : await store.bots.owned(user.id, bot_id);
    return ownBot(store, files, bot, user);
  },
});

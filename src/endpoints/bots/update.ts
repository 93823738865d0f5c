import { z } from 'zod';
import { byLanguage, descriptionText, nameText, shortDescriptionText } from '../../actions/identity_texts.js';
import { ownBot } from '../../actions/own_bot.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { ownedBotSettings } from '../../wire/owner_results.js';

/**
 * Changes a bot's texts in the default language, with the limits and errors of the corresponding bot methods. Texts in
 * other languages stay unchanged (behaviour §11).
 */
export const updateBot = defineEndpoint({
  verb: 'PATCH',
  path: '/api/me/bots/{bot_id}',
  summary:
    'Sets a bot’s texts for one or several languages. The key `""` is the default language. An empty text removes the text for that language.',
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

import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { botId } from '../../api/fields.js';
import { byLanguage, descriptionText, nameText, shortDescriptionText } from '../../api/identity_texts.js';
import { viewPictures } from '../../api/pictures.js';
import { ownedBotSettings } from '../../api/results.js';
import { botProfile } from '../../store/bots.js';
import { viewOwnBot } from '../../view/bots.js';

/** The same limits and answers as the setters of the bot interface; languages that are not named stay (behaviour §11). */
export const updateBot = defineEndpoint({
  verb: 'PATCH',
  path: '/api/me/bots/{bot_id}',
  summary: 'Sets texts of a bot by language, `""` for the default; an empty text removes.',
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
    const shown = await store.bots.descriptions(bot.id);
    const pictures = viewPictures(files, shown.pictures);
    return viewOwnBot(botProfile(bot, user.languageCode), bot, shown, pictures);
  },
});

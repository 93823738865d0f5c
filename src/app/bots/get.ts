import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { botId } from '../../api/fields.js';
import { viewPictures } from '../../api/pictures.js';
import { ownedBotSettings } from '../../api/results.js';
import { botProfile } from '../../store/bots.js';
import { viewOwnBot } from '../../view/bots.js';

export const getBot = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}',
  summary: 'A bot of the caller, with its texts by language.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: ownedBotSettings,
  handler: async ({ user, store, files }, p) => {
    const bot = await store.bots.owned(user.id, p.bot_id);
    const shown = await store.bots.descriptions(bot.id);
    const pictures = viewPictures(files, shown.pictures);
    return viewOwnBot(botProfile(bot, user.languageCode), bot, shown, pictures);
  },
});

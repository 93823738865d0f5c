import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { botId } from '../../api/fields.js';
import { ownBot } from '../../api/own_bot.js';
import { ownedBotSettings } from '../../api/owner_results.js';

export const getBot = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}',
  summary: 'Returns a bot of the caller with its texts by language.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: ownedBotSettings,
  handler: async ({ user, store, files }, p) => {
    return ownBot(store, files, await store.bots.owned(user.id, p.bot_id), user);
  },
});

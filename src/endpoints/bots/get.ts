import { z } from 'zod';
import { ownBot } from '../../actions/own_bot.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { ownedBotSettings } from '../../wire/owner_results.js';

export const getBot = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}',
  summary: 'Returns one of the caller’s bots with its texts in each language.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: ownedBotSettings,
  handler: async ({ user, store, files }, p) => {
    return ownBot(store, files, await store.bots.owned(user.id, p.bot_id), user);
  },
});

import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { botWithToken } from '../../wire/results.js';

/** Issues a new token for a bot. The old token stops working immediately (interface §4.2, §5.4). */
export const regenerateToken = defineEndpoint({
  verb: 'POST',
  path: '/api/me/bots/{bot_id}/regenerate_token',
  summary: 'Issues a new token. The old token stops working before this call returns.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: botWithToken,
  handler: async ({ user, store }, p) => {
    const { bot, token } = await store.bots.regenerateToken(user.id, p.bot_id);
    return { id: bot.id, username: bot.username, token };
  },
});

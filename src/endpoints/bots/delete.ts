import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';

export const deleteBot = defineEndpoint({
  verb: 'DELETE',
  path: '/api/me/bots/{bot_id}',
  summary:
    'Deletes a bot, its token, its webhook and its pending updates. The bot’s messages remain. Its username stays reserved for 30 days.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  handler: ({ user, store }, p) => store.bots.remove(user.id, p.bot_id),
});

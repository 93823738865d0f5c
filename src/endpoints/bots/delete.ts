import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { done } from '../../wire/results.js';

export const deleteBot = defineEndpoint({
  verb: 'DELETE',
  path: '/api/me/bots/{bot_id}',
  summary:
    'Deletes a bot with its token, webhook and pending updates. Its messages stay; its username is held for 30 days.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: done,
  handler: async ({ user, store }, p) => {
    await store.bots.remove(user.id, p.bot_id);
    return true;
  },
});

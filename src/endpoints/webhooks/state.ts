import { z } from 'zod';
import { webhookState } from '../../actions/webhooks.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { webhookInfo } from '../../wire/results.js';

export const showWebhook = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/webhook',
  summary: 'Returns to the bot’s owner what `getWebhookInfo` returns to the bot.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: webhookInfo,
  handler: async ({ user, store }, { bot_id }) => {
    await store.bots.owned(user.id, bot_id);
    return webhookState(store, bot_id);
  },
});

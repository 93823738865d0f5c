import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { botId } from '../../api/fields.js';
import { webhookInfo } from '../../api/results.js';
import { webhookState } from '../../api/webhooks.js';

export const showWebhook = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/webhook',
  summary: 'Returns what `getWebhookInfo` returns, to the bot’s owner.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: webhookInfo,
  handler: async ({ user, store }, { bot_id }) => {
    await store.bots.owned(user.id, bot_id);
    return webhookState(store, bot_id);
  },
});

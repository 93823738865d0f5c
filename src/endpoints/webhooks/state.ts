import { z } from 'zod';
import { webhookRouteStates, webhookState } from '../../actions/webhooks.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { webhookInfo, webhookRoute } from '../../wire/results.js';

export const showWebhook = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/webhook',
  summary:
    'Returns the webhook state of one of the caller’s bots, in the same form as the method `getWebhookInfo`.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: webhookInfo,
  handler: async ({ user, store }, { bot_id }) => {
    await store.bots.owned(user.id, bot_id);
    return webhookState(store, bot_id);
  },
});

export const listWebhookRoutes = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/webhook/routes',
  summary:
    'Returns the webhook routes of one of the caller’s bots, in the same form as the method `getWebhookRoutes`.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: z.strictObject({ items: z.array(webhookRoute) }),
  handler: async ({ user, store }, { bot_id }) => {
    await store.bots.owned(user.id, bot_id);
    return { items: await webhookRouteStates(store, bot_id) };
  },
});

import { z } from 'zod';
import { webhookRouteStates } from '../../actions/webhooks.js';
import { defineMethod } from '../../server/method.js';
import { webhookRoute } from '../../wire/results.js';

/** Returns the bot's webhook routes in their order (behaviour §10). */
export const getWebhookRoutes = defineMethod({
  name: 'getWebhookRoutes',
  effect: 'read',
  summary:
    'Lists the webhook routes in their order, each with its settings, number of pending updates and last error.',
  params: z.object({}),
  result: z.array(webhookRoute),
  handler: ({ bot, store }) => webhookRouteStates(store, bot.id),
});

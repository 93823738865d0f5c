import { z } from 'zod';
import { webhookRouteStates } from '../../actions/webhooks.js';
import { defineMethod } from '../../server/method.js';
import { webhookRoute } from '../../wire/results.js';

/** Returns the webhook routes of the bot in order (behaviour §10). */
export const getWebhookRoutes = defineMethod({
  name: 'getWebhookRoutes',
  effect: 'read',
  summary: 'Returns the webhook routes in order, with their settings, pending updates and last errors.',
  params: z.object({}),
  result: z.array(webhookRoute),
  handler: ({ bot, store }) => webhookRouteStates(store, bot.id),
});

import { z } from 'zod';
import { webhookState } from '../../actions/webhooks.js';
import { defineMethod } from '../../server/method.js';
import { webhookInfo } from '../../wire/results.js';

/** Returns the state of update delivery (interface §2). The URL is empty while the bot polls. */
export const getWebhookInfo = defineMethod({
  name: 'getWebhookInfo',
  effect: 'read',
  summary: 'Returns the webhook’s settings, its pending updates and its last error.',
  params: z.object({}),
  result: webhookInfo,
  handler: ({ bot, store }) => webhookState(store, bot.id),
});

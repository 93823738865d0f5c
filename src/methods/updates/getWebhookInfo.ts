import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { webhookInfo } from '../../api/results.js';
import { webhookState } from '../../api/webhooks.js';

/** The state of update delivery (interface §2). The URL is empty while the bot polls. */
export const getWebhookInfo = defineMethod({
  name: 'getWebhookInfo',
  summary: 'Returns the webhook’s settings, its pending updates and its last error.',
  params: z.object({}),
  result: webhookInfo,
  handler: ({ bot, store }) => webhookState(store, bot.id),
});

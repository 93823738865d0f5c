import { z } from 'zod';
import { webhookState } from '../../actions/webhooks.js';
import { defineMethod } from '../../server/method.js';
import { webhookInfo } from '../../wire/results.js';

/** Returns the state of the bot's webhook (interface §2). The URL is empty while the bot polls. */
export const getWebhookInfo = defineMethod({
  name: 'getWebhookInfo',
  effect: 'read',
  summary: 'Returns the webhook’s settings, the number of pending updates and the last error.',
  params: z.object({}),
  result: webhookInfo,
  handler: ({ bot, store }) => webhookState(store, bot.id),
});

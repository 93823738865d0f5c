import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { webhookInfo } from '../../api/results.js';
import { limits } from '../../limits.js';
import { defaultUpdateMask, maskNames } from '../../rules/update_kinds.js';

/** The state of update delivery (interface §2). The URL is empty while the bot polls. */
export const getWebhookInfo = defineMethod({
  name: 'getWebhookInfo',
  summary: 'Tells how updates are delivered and how many wait.',
  params: z.object({}),
  result: webhookInfo,
  handler: async ({ bot, store }) => {
    const [webhook, info] = await Promise.all([store.webhooks.find(bot.id), store.queues.info(bot.id)]);
    const { pending, mask, error, strayed } = info;
    return {
      url: webhook?.url ?? '',
      has_custom_certificate: webhook !== null && webhook.certificate !== null,
      pending_update_count: pending,
      last_error_date: (webhook && error?.date) ?? null,
      last_error_message: (webhook && error?.message) ?? null,
      max_connections: webhook?.maxConnections ?? limits.webhook_connections_default,
      ...(webhook?.address ? { ip_address: webhook.address } : {}),
      ...(webhook && strayed !== null ? { last_synchronization_error_date: strayed } : {}),
      ...(mask === defaultUpdateMask ? {} : { allowed_updates: maskNames(mask) }),
    };
  },
});

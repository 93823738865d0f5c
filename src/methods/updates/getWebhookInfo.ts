import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { webhookInfo } from '../../api/results.js';
import { limits } from '../../limits.js';
import { defaultUpdateMask, maskNames } from '../../rules/update_kinds.js';

/** The state of update delivery (interface §2). While no webhook can be set, the URL is empty. */
export const getWebhookInfo = defineMethod({
  name: 'getWebhookInfo',
  summary: 'Tells how updates are delivered and how many wait.',
  params: z.object({}),
  result: webhookInfo,
  handler: async ({ bot, store }) => {
    const { pending, mask } = await store.queues.info(bot.id);
    return {
      url: '',
      has_custom_certificate: false,
      pending_update_count: pending,
      last_error_date: null,
      last_error_message: null,
      max_connections: limits.webhook_connections_default,
      ...(mask === defaultUpdateMask ? {} : { allowed_updates: maskNames(mask) }),
    };
  },
});

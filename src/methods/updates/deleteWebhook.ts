import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { done } from '../../api/results.js';
import { boolean, optional } from '../../api/schema.js';
import { removeWebhook } from '../../api/webhooks.js';

/** Ends webhook mode (interface §6): what was not delivered waits for getUpdates, unless it is dropped. */
export const deleteWebhook = defineMethod({
  name: 'deleteWebhook',
  summary: 'Deletes the webhook, so updates can be polled again. Optionally drops pending updates.',
  params: z.object({ drop_pending_updates: optional(boolean) }),
  result: done,
  handler: ({ bot, store }, p) => removeWebhook(store, bot.id, p.drop_pending_updates ?? false),
});

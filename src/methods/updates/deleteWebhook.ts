import { z } from 'zod';
import { removeWebhook } from '../../actions/webhooks.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { boolean, optional } from '../../wire/schema.js';

/** Ends webhook mode (interface §6). Pending updates are dropped if requested. Otherwise they wait for getUpdates. */
export const deleteWebhook = defineMethod({
  name: 'deleteWebhook',
  effect: 'configure',
  inAnswers: false,
  summary: 'Deletes the webhook, so that the bot can poll again. Optionally drops pending updates.',
  params: z.object({ drop_pending_updates: optional(boolean) }),
  result: done,
  handler: ({ bot, store }, p) => removeWebhook(store, bot.id, p.drop_pending_updates ?? false),
});

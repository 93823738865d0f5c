import { z } from 'zod';
import { Described, defineMethod } from '../../api/method.js';
import { done } from '../../api/results.js';
import { boolean, optional } from '../../api/schema.js';

/** Ends webhook mode (interface §6). No bot can set a webhook yet, so there is none to end. */
export const deleteWebhook = defineMethod({
  name: 'deleteWebhook',
  summary: 'Switches to polling, dropping what waits if asked.',
  params: z.object({ drop_pending_updates: optional(boolean) }),
  result: done,
  handler: async ({ bot, store }, p) => {
    if (p.drop_pending_updates) await store.queues.dropPending(bot.id);
    return new Described(true, 'Webhook is already deleted');
  },
});

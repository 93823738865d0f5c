import { z } from 'zod';
import { Described, defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { boolean, optional, routeName } from '../../wire/schema.js';

/** Deletes a webhook route (behaviour §10). */
export const deleteWebhookRoute = defineMethod({
  name: 'deleteWebhookRoute',
  effect: 'configure',
  inAnswers: false,
  summary:
    'Deletes a webhook route. The route’s pending updates then go to the webhook, or to polls if the bot has no webhook. With `drop_pending_updates`, Petrel drops the route’s pending updates.',
  params: z.object({ name: routeName, drop_pending_updates: optional(boolean) }),
  errors: ['route_name_invalid'],
  result: done,
  handler: async ({ bot, store }, p) => {
    const removed = await store.webhooks.removeRoute(bot.id, p.name, p.drop_pending_updates ?? false);
    return new Described(true, removed ? 'Webhook route was deleted' : 'Webhook route is already deleted');
  },
});

import { z } from 'zod';
import { webhookNamed } from '../../actions/webhooks.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pinging } from '../../server/pings.js';
import { storeLimits as limits } from '../../store/limits.js';
import { botId } from '../../wire/fields.js';
import { optional, routeName } from '../../wire/schema.js';
import { ping } from '../../wire/webhook_results.js';

/** Sends a test request to a webhook. Stores nothing, so the person's other changes need not wait for this call. */
export const pingWebhook = defineEndpoint({
  verb: 'POST',
  path: '/api/me/bots/{bot_id}/webhook/ping',
  summary: `Sends a test request to a bot’s webhook or to one of its webhook routes. Returns the request and the receiver’s answer. The request is signed like a delivery, but contains no update. An owner may send ${limits.pings_per_owner_max} test requests per minute.`,
  params: z.object({
    bot_id: botId,
    route: optional(routeName).describe('Selects this webhook route'),
  }),
  result: ping,
  inRedis: true,
  errors: [
    ...(['bot_not_found', 'not_bot_owner', 'route_name_invalid', 'route_not_found'] as const),
    ...(['webhook_not_set', 'deliveries_paused', 'too_many_requests'] as const),
  ],
  handler: async ({ user, store, pings }, p) => {
    const bot = await store.bots.owned(user.id, p.bot_id);
    const webhook = await webhookNamed(store, bot.id, p.route);
    if (pings === null) return fail('deliveries_paused');
    return pinging(user.id, () => pings.send(bot, webhook, () => store.lookUps.takePing(user.id)));
  },
});

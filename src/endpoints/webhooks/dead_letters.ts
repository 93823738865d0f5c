import { z } from 'zod';
import { routeNamed } from '../../actions/webhooks.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { each, page } from '../../server/pages.js';
import { botProfile } from '../../store/core/profiles.js';
import { viewDeadLetter } from '../../view/deliveries.js';
import { botId, numberCursor, pageSize } from '../../wire/fields.js';
import { optional, routeName } from '../../wire/schema.js';
import { deadLetterPage, discardedCount } from '../../wire/webhook_results.js';

const route = optional(routeName).describe('Selects the dead letters of this webhook route');
const path = '/api/me/bots/{bot_id}/webhook/dead_letters';

export const listDeadLetters = defineEndpoint({
  verb: 'GET',
  path,
  summary: 'Lists dead letters, oldest first. Dead letters are kept for a week.',
  params: z.object({ bot_id: botId, route, cursor: numberCursor, limit: optional(pageSize) }),
  result: deadLetterPage,
  errors: ['bot_not_found', 'not_bot_owner', 'route_name_invalid', 'route_not_found'],
  handler: async ({ user, store }, p) => {
    const bot = await store.bots.owned(user.id, p.bot_id);
    const limit = p.limit ?? limits.page_size_default;
    const of = await routeNamed(store, bot.id, p.route);
    const { items, more } = await store.replays.list(bot.id, p.cursor ?? 0, limit, limits.page_bytes_max, of);
    const profile = botProfile(bot);
    return page(
      items,
      more,
      ({ update }) => String(update.updateId),
      each((letter) => viewDeadLetter(letter, profile, store.time)),
    );
  },
});

export const discardDeadLetters = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Discards all dead letters of a bot, or only those of one webhook route.',
  params: z.object({ bot_id: botId, route }),
  result: discardedCount,
  errors: ['bot_not_found', 'not_bot_owner', 'route_name_invalid', 'route_not_found'],
  handler: async ({ user, store }, p) => {
    const bot = await store.bots.owned(user.id, p.bot_id);
    return { discarded: await store.replays.discard(bot.id, await routeNamed(store, bot.id, p.route)) };
  },
});

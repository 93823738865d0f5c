import { z } from 'zod';
import { outcomeFilter } from '../../actions/webhooks.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { viewAttempt } from '../../view/deliveries.js';
import { attemptStatus, botId, numberCursor, pageSize } from '../../wire/fields.js';
import { integer, optional } from '../../wire/schema.js';
import { attemptPage } from '../../wire/webhook_results.js';

/**
 * Lists all failures and the last successes of a bot's webhook. Older successes are only counted (behaviour §10).
 * Deliveries to a former owner's receiver are hidden, because they contain that receiver's answers.
 */
export const listDeliveries = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/webhook/deliveries',
  summary: `Lists the delivery attempts of a webhook, newest first: the failures of the last week and the last ${limits.delivery_successes_kept} successes.`,
  params: z.object({
    bot_id: botId,
    update_id: optional(integer()).describe('Returns only attempts to deliver this update'),
    status: attemptStatus,
    cursor: numberCursor,
    limit: optional(pageSize),
  }),
  result: attemptPage,
  errors: ['bot_not_found', 'not_bot_owner'],
  handler: async ({ user, store }, p) => {
    const bot = await store.bots.owned(user.id, p.bot_id);
    const filter = { ofOwner: true, updateId: p.update_id ?? null, ...outcomeFilter(p.status) };
    const limit = p.limit ?? limits.page_size_default;
    const [found, counts] = await Promise.all([
      store.attempts.list(bot.id, filter, p.cursor ?? limits.id_max, limit + 1),
      store.attempts.counts(bot.id),
    ]);
    return { ...(await pageById(found, limit, viewAttempt)), counts };
  },
});

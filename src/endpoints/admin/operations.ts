/** Shows operators the state of the installation and the dead letters of bots. The page `/ops` uses these endpoints. */
import { z } from 'zod';
import { fail } from '../../errors.js';
import { ruleLimits } from '../../rules/limits.js';
import { defineAdminEndpoint } from '../../server/endpoint.js';
import { callLimits } from '../../server/limits.js';
import { each, page } from '../../server/pages.js';
import { storeLimits } from '../../store/limits.js';
import {
  history,
  historyRanges,
  operatorLetters,
  overview,
  rankedBots,
  rankings,
  replayedUpdates,
} from '../../wire/admin_results.js';
import { numberCursor, pageSize, userId } from '../../wire/fields.js';
import { integer, optional, text } from '../../wire/schema.js';

export const showOverview = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/overview',
  summary: 'Returns the state of the installation: processes, journals, queues, Redis and Postgres.',
  params: z.object({}),
  errors: ['unavailable'],
  result: overview,
  handler: ({ operations }) => (operations ?? fail('unavailable', { retry_after: 1 })).overview(),
});

export const showHistory = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/history',
  summary:
    'Returns how the installation’s figures changed over time, as sums over all processes: calls, deliveries, journal and Redis memory.',
  params: z.object({
    range: optional(z.enum(historyRanges, { error: historyRanges.join(', ') })).describe(
      'How far back: `1h`, the default, or with the setting PROMETHEUS_URL also `6h`, `24h` or `7d`',
    ),
    after_ms: optional(integer().pipe(z.number().min(0, { error: 'a Unix time in ms' }))).describe(
      'Unix time in ms. Only points that begin later are returned',
    ),
  }),
  errors: ['no_prometheus', 'unavailable'],
  result: history,
  handler: ({ operations }, { range = '1h', after_ms = 0 }) =>
    (operations ?? fail('unavailable', { retry_after: 1 })).history(range, after_ms),
});

export const rankBots = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/bots',
  summary:
    'Lists the bots with the most pending updates, failures or dead letters. With `bot`, returns only that bot.',
  params: z.object({
    order: optional(z.enum(rankings, { error: rankings.join(', ') })).describe(
      `What to sort by: \`pending\` (considers up to ${callLimits.bots_looked_at_max} webhooks that are due), \`failures\` (webhooks that fail now come first) or \`dead_letters\``,
    ),
    bot: optional(text).describe('Id or username of the only bot to return'),
    limit: optional(
      integer()
        .pipe(z.number())
        .transform((n) => Math.min(callLimits.bots_ranked_max, Math.max(1, n))),
    ).describe(`Maximum number of bots: 1 to ${callLimits.bots_ranked_max}, clamped`),
  }),
  errors: ['bot_not_found', 'unavailable'],
  result: rankedBots,
  handler: async ({ operations, store }, { order = 'pending', bot, limit = callLimits.bots_ranked_max }) => {
    if (operations === null) return fail('unavailable', { retry_after: 1 });
    if (bot === undefined) return { items: await operations.bots({ order, limit }) };
    const found = /^\d{1,13}$/.test(bot)
      ? await store.bots.find(Number(bot))
      : await store.bots.findByUsername(bot.replace(/^@/, ''));
    return { items: await operations.bots({ order, limit, bot: (found ?? fail('bot_not_found')).id }) };
  },
});

const letters = '/api/admin/bots/{id}/dead_letters';

export const listBotDeadLetters = defineAdminEndpoint({
  verb: 'GET',
  path: letters,
  summary: 'Lists the dead letters of a bot, oldest first, without message content.',
  params: z.object({ id: userId, cursor: numberCursor, limit: optional(pageSize) }),
  errors: ['bot_not_found'],
  result: operatorLetters,
  handler: async ({ store }, p) => {
    const bot = (await store.bots.find(p.id)) ?? fail('bot_not_found');
    const { items, more } = await store.replays.list(
      bot.id,
      p.cursor ?? 0,
      p.limit ?? ruleLimits.page_size_default,
      storeLimits.script_read_bytes_max,
    );
    return page(
      items,
      more,
      ({ update }) => String(update.updateId),
      each(({ update, reason, date }) => ({
        update_id: update.updateId,
        type: update.kind,
        reason,
        date: Math.floor(date / 1_000),
      })),
    );
  },
});

const updateId = optional(
  integer().pipe(z.number().min(0, { error: 'an update_id' }).max(ruleLimits.id_max)),
);

export const replayDeadLetters = defineAdminEndpoint({
  verb: 'POST',
  path: `${letters}/replay`,
  summary: `Delivers a bot’s dead letters again, either all of them or those in a range of ids. One call delivers at most ${storeLimits.replay_max} updates. The bot’s audit log records the call.`,
  params: z.object({
    id: userId,
    from_update_id: updateId.describe('First of the range; the oldest dead letter if absent'),
    to_update_id: updateId.describe('Last of the range; the newest dead letter if absent'),
  }),
  errors: ['bot_not_found', 'too_many_requests'],
  result: replayedUpdates,
  handler: async ({ store }, { id, from_update_id: from = 0, to_update_id: to = ruleLimits.id_max }) => {
    const bot = (await store.bots.find(id)) ?? fail('bot_not_found');
    if (to < from) fail('parameter_wrong', { name: 'to_update_id', what: 'at least from_update_id' });
    const ask = { from, to, delivered: false, ofOwner: true };
    const { queued, first, last } = await store.replays.replay(bot.id, ask, { type: 'operator' });
    return {
      queued,
      ...(first === null || last === null ? {} : { from_update_id: first, to_update_id: last }),
    };
  },
});

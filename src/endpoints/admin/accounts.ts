/** Lets administrators find people and bots, and see their state. The page `/ops` uses these endpoints. */
import { z } from 'zod';
import {
  viewFoundAccount,
  viewOperatorAttempt,
  viewOperatorBot,
  viewOperatorPerson,
} from '../../actions/operators.js';
import { outcomeFilter } from '../../actions/webhooks.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineAdminEndpoint } from '../../server/endpoint.js';
import { page, pageById } from '../../server/pages.js';
import { searchingAsAdministrator } from '../../server/searches.js';
import { storeLimits } from '../../store/limits.js';
import type { Store } from '../../store/store.js';
import { accountPage, operatorAttempts, operatorBot, operatorPerson } from '../../wire/admin_results.js';
import { attemptStatus, numberCursor, pageSize, queryText, searchQuery, userId } from '../../wire/fields.js';
import { optional } from '../../wire/schema.js';

export const searchAccounts = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/accounts',
  summary: `Searches people and bots by parts of their usernames and names. The first result is the account whose id or username equals the query. All other matches come after it, newest first. One call reads up to ${storeLimits.search_accounts_rows_max} accounts, so a page can be empty although another page follows.`,
  params: z.object({
    query: searchQuery.describe(queryText('an account')),
    cursor: numberCursor,
    limit: optional(pageSize),
  }),
  errors: ['too_many_requests', 'unavailable'],
  result: accountPage,
  handler: async ({ store }, { query, cursor = null, limit = limits.page_size_default }) => {
    const { accounts, next } = await searchingAsAdministrator(() =>
      store.oversight.search(query, cursor, limit),
    );
    const shown = await page(
      accounts,
      false,
      ({ id }) => String(id),
      async (rows) => rows.map(viewFoundAccount),
    );
    return next === 0 ? shown : { next_cursor: String(next), ...shown };
  },
});

/** Returns the bot's own queue, followed by the queues of its webhook routes. */
async function queuesOf(store: Store, bot: number) {
  const [webhook, info, routes] = await Promise.all([
    store.webhooks.find(bot),
    store.queues.info(bot),
    store.webhooks.routeStates(bot),
  ]);
  return [
    { slot: 0, webhook, info },
    ...routes.map((route) => ({ slot: route.slot, webhook: route, info: route.info })),
  ];
}

export const inspectBot = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/bots/{id}',
  summary:
    'Returns a bot’s owner, state, queues and limits, and how many delivery attempts had each outcome. The answer contains no tokens and no secrets, and only the host of each URL.',
  params: z.object({ id: userId }),
  errors: ['bot_not_found'],
  result: operatorBot,
  handler: async ({ store }, { id }) => {
    const bot = (await store.oversight.bot(id)) ?? fail('bot_not_found');
    const [owner, counts, letters, outcomes, failing, queues] = await Promise.all([
      bot.owner_id === null ? null : store.oversight.person(bot.owner_id),
      store.attempts.counts(id),
      store.replays.countDead(id),
      store.attempts.outcomes(id),
      store.oversight.failingSlots(id),
      queuesOf(store, id),
    ]);
    return {
      ...viewOperatorBot({ bot, owner, counts, letters, outcomes, failing, queues }),
      rates: (['bot', 'poll', 'owner', 'chat'] as const).flatMap((kind) => {
        const rate = store.fairUse?.rates[kind];
        return rate === undefined ? [] : [{ kind, calls: rate.calls, seconds: rate.seconds }];
      }),
      pending_updates_max: storeLimits.queue_length_max,
      pending_bytes_max: storeLimits.queue_bytes_max,
    };
  },
});

export const listBotAttempts = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/bots/{id}/attempts',
  summary: `Lists a bot’s delivery attempts, newest first: the failures of the last week and the last ${limits.delivery_successes_kept} successes. Receivers’ answers are not included.`,
  params: z.object({ id: userId, status: attemptStatus, cursor: numberCursor, limit: optional(pageSize) }),
  errors: ['bot_not_found'],
  result: operatorAttempts,
  handler: async ({ store }, p) => {
    const bot = (await store.oversight.bot(p.id)) ?? fail('bot_not_found');
    const limit = p.limit ?? limits.page_size_default;
    const filter = { ofOwner: false, updateId: null, ...outcomeFilter(p.status) };
    const found = await store.attempts.list(bot.id, filter, p.cursor ?? limits.id_max, limit + 1);
    return pageById(found, limit, viewOperatorAttempt);
  },
});

export const inspectPerson = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/users/{id}',
  summary: 'Returns a person’s state and how many bots they have.',
  params: z.object({ id: userId }),
  errors: ['user_not_found'],
  result: operatorPerson,
  handler: async ({ store }, { id }) =>
    viewOperatorPerson((await store.oversight.person(id)) ?? fail('user_not_found')),
});

export const listBotsOfPerson = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/users/{id}/bots',
  summary: 'Lists the bots of a person, oldest first.',
  params: z.object({ id: userId, cursor: numberCursor, limit: optional(pageSize) }),
  errors: ['user_not_found'],
  result: accountPage,
  handler: async ({ store }, { id, cursor = 0, limit = limits.page_size_default }) => {
    const person = (await store.oversight.person(id)) ?? fail('user_not_found');
    const found = await store.bots.listOf(person.id, cursor, limit + 1);
    return pageById(found, limit, (bot) => ({
      type: 'bot',
      id: bot.id,
      username: bot.username,
      name: bot.name,
      suspended: bot.state === 'suspended',
    }));
  },
});

import { z } from 'zod';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { botProfile } from '../../store/core/profiles.js';
import { viewBot } from '../../view/bots.js';
import { numberCursor, pageSize } from '../../wire/fields.js';
import { ownedBotPage } from '../../wire/results.js';
import { optional } from '../../wire/schema.js';

export const listBots = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots',
  summary: 'Lists the caller’s bots, sorted by id.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: ownedBotPage,
  handler: async ({ user, store }, { cursor: after = 0, limit = limits.page_size_default }) =>
    pageById(await store.bots.listOf(user.id, after, limit + 1), limit, (bot) =>
      viewBot(botProfile(bot, user.languageCode)),
    ),
});

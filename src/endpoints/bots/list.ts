import { z } from 'zod';
import { limits } from '../../limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageOfRows, viewed } from '../../server/pages.js';
import { botProfile } from '../../store/core/profiles.js';
import { viewBot } from '../../view/bots.js';
import { numberCursor, pageSize } from '../../wire/fields.js';
import { ownedBotPage } from '../../wire/results.js';
import { optional } from '../../wire/schema.js';

export const listBots = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots',
  summary: 'Pages through the bots of the caller, in the order of their ids.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: ownedBotPage,
  handler: async ({ user, store }, { cursor: after = 0, limit = limits.page_size_default }) =>
    pageOfRows(
      await store.bots.listOf(user.id, after, limit + 1),
      limit,
      ({ id }) => String(id),
      viewed((bot) => viewBot(botProfile(bot, user.languageCode))),
    ),
});

import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { ownedBotList } from '../../api/results.js';
import { botProfile } from '../../store/core/profiles.js';
import { viewBot } from '../../view/bots.js';

export const listBots = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots',
  summary: 'The bots of the caller.',
  params: z.object({}),
  result: ownedBotList,
  handler: async ({ user, store }) =>
    (await store.bots.listOf(user.id)).map((bot) => viewBot(botProfile(bot, user.languageCode))),
});

import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { botName, botUsername } from '../../wire/fields.js';
import { botWithToken } from '../../wire/results.js';

export const createBot = defineEndpoint({
  verb: 'POST',
  path: '/api/me/bots',
  summary: 'Creates a bot. The username must end in "bot".',
  params: z.object({ username: botUsername, name: botName }),
  errors: ['username_invalid', 'username_taken', 'name_invalid', 'name_too_long', 'too_many_bots'],
  result: botWithToken,
  handler: async ({ user, store }, p) => {
    const { bot, token } = await store.bots.create(user.id, p.username, p.name);
    return { id: bot.id, username: bot.username, token };
  },
});

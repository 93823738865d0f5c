import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { issuedToken } from '../../wire/results.js';

export const showToken = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/token',
  summary: 'Returns the token of one of the caller’s bots.',
  params: z.object({ bot_id: botId }),
  errors: ['bot_not_found', 'not_bot_owner', 'token_blocked'],
  result: issuedToken,
  handler: async ({ user, store }, p) => ({ token: await store.bots.token(user.id, p.bot_id) }),
});

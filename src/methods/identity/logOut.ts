import { z } from 'zod';
import { defineMethod } from '../../server/method.js';

/**
 * With a hosted service, this method ends a bot's session before the bot moves to a self-hosted server. Petrel is the
 * only server, so the call changes nothing: the token stays valid and updates continue (behaviour §4).
 */
export const logOut = defineMethod({
  name: 'logOut',
  effect: 'change',
  inAnswers: false,
  summary: 'Returns true and changes nothing. The token stays valid.',
  params: z.object({}),
  handler: () => undefined,
});

import { z } from 'zod';
import { defineMethod } from '../../server/method.js';

/**
 * Does nothing. The token stays valid and updates continue (behaviour §4). In a hosted service, this method ends a
 * bot's session before the bot moves to a self-hosted server. With Petrel there is no other server to move to.
 */
export const logOut = defineMethod({
  name: 'logOut',
  effect: 'change',
  inAnswers: false,
  summary: 'Returns true and changes nothing. The token stays valid.',
  params: z.object({}),
  handler: () => undefined,
});

import { z } from 'zod';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';

/**
 * Elsewhere this ends a bot's session with a hosted service before it moves to a self-hosted server. Petrel is the only
 * server, so nothing changes: the token stays valid and updates continue (behaviour §4).
 */
export const logOut = defineMethod({
  name: 'logOut',
  effect: 'change',
  inAnswers: false,
  summary: 'Returns true and changes nothing. The token stays valid.',
  params: z.object({}),
  result: done,
  handler: () => true,
});

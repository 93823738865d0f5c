import { z } from 'zod';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';

/**
 * Elsewhere this ends a bot's session with a hosted service before a server of one's own takes it over. Here the server is
 * the service, so there is no session to end: the token stays valid and updates go on (behaviour §4).
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

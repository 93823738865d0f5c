import { z } from 'zod';
import { defineMethod } from '../../server/method.js';

/**
 * Changes nothing. On other servers, this method ends a bot's instance before the bot moves to another server. In
 * Petrel every node serves every bot, so the token, the queue, polls and the webhook continue to work (behaviour §4).
 */
export const close = defineMethod({
  name: 'close',
  effect: 'change',
  inAnswers: false,
  summary: 'Returns true and changes nothing, because there is no bot instance to close.',
  params: z.object({}),
  handler: () => undefined,
});

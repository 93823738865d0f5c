import { z } from 'zod';
import { defineMethod } from '../../server/method.js';

/**
 * Does nothing. In a hosted service, this method ends the bot's instance on one server before the bot moves to another
 * server. In Petrel every node serves every bot, so the token, the queue, polls and the webhook keep working (behaviour
 * §4).
 */
export const close = defineMethod({
  name: 'close',
  effect: 'change',
  inAnswers: false,
  summary: 'Returns true and changes nothing, because there is no bot instance to close.',
  params: z.object({}),
  handler: () => undefined,
});

import { z } from 'zod';
import { defineMethod } from '../../server/method.js';

/**
 * Does nothing. Elsewhere, a bot calls this method before it moves to another server, and the bot's instance then ends.
 * In Petrel every node serves every bot, so the token, the queue, polls and the webhook keep working (behaviour §4).
 */
export const close = defineMethod({
  name: 'close',
  effect: 'change',
  inAnswers: false,
  summary: 'Returns true and changes nothing, because there is no bot instance to close.',
  params: z.object({}),
  handler: () => undefined,
});

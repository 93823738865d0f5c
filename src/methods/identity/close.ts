import { z } from 'zod';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';

/**
 * On other servers this ends a bot's instance before the bot moves to another server. Here every node serves every bot
 * and keeps no instance, so nothing changes: token, queue, polls and webhook continue (behaviour §4).
 */
export const close = defineMethod({
  name: 'close',
  effect: 'change',
  inAnswers: false,
  summary: 'Returns true and changes nothing: nodes keep no bot instances.',
  params: z.object({}),
  result: done,
  handler: () => true,
});

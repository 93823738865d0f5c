import { z } from 'zod';
import { consumerName } from '../../actions/polling.js';
import { defineMethod } from '../../server/method.js';
import { integer, optional } from '../../wire/schema.js';

/**
 * Confirms updates that the bot got from `streamUpdates` (behaviour §9). Like the `offset` of `getUpdates`, the call
 * changes only the queue, and it counts against the bot's limit for polls.
 */
export const confirmUpdates = defineMethod({
  name: 'confirmUpdates',
  effect: 'read',
  polls: true,
  consumes: true,
  summary:
    'Confirms updates that the bot got from `streamUpdates`, up to the last update that the bot has processed.',
  params: z.object({
    offset: integer().describe('Id of the last processed update, plus one'),
    consumer: optional(consumerName).describe('Consumer of the stream that sent the updates'),
  }),
  errors: ['poll_while_webhook', 'poll_while_consumers'],
  handler: ({ bot, store }, p) => store.polls.confirm(bot.id, p.offset, p.consumer),
});

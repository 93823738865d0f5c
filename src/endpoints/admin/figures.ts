/**
 * Returns the pending updates and the delivery counts of one bot. Metrics have no label for the bot, so they cannot
 * show these numbers.
 */
import { z } from 'zod';
import { fail } from '../../errors.js';
import { defineAdminEndpoint } from '../../server/endpoint.js';
import { userId } from '../../wire/fields.js';

const count = z.int();

const figures = z.object({
  id: z.int(),
  username: z.string(),
  pending_update_count: count.describe('Number of pending updates'),
  webhook_host: z.string().optional().describe('Absent while the bot polls'),
  last_error_date: z.int().optional(),
  last_error_message: z.string().optional(),
  delivered_count: count,
  failed_count: count.describe('Number of failed delivery attempts'),
  dead_count: count.describe('Number of updates that became dead letters so far'),
  dead_letter_count: count.describe('Number of dead letters that can be replayed'),
});

export const botFigures = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/bots/{id}/figures',
  summary: 'Returns the pending updates and delivery counts of a bot.',
  params: z.object({ id: userId }),
  errors: ['bot_not_found'],
  result: figures,
  handler: async ({ store }, { id }) => {
    const bot = (await store.bots.find(id)) ?? fail('bot_not_found');
    const [webhook, { pending, error }, dead, counts] = await Promise.all([
      store.webhooks.find(id),
      store.queues.info(id),
      store.replays.countDead(id),
      store.attempts.counts(id),
    ]);
    return {
      id,
      username: bot.username,
      pending_update_count: pending,
      ...(webhook ? { webhook_host: new URL(webhook.url).host } : {}),
      ...(webhook && error ? { last_error_date: error.date, last_error_message: error.message } : {}),
      delivered_count: counts.delivered,
      failed_count: counts.failed,
      dead_count: counts.dead,
      dead_letter_count: dead,
    };
  },
});

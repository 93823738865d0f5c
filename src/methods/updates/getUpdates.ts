import { z } from 'zod';
import { botSender } from '../../actions/compose.js';
import { consumerOf, consumerParams, tokenCheck } from '../../actions/polling.js';
import { updateMask } from '../../rules/update_kinds.js';
import { defineMethod } from '../../server/method.js';
import { storeLimits as limits } from '../../store/limits.js';
import { viewUpdate } from '../../view/updates.js';
import { updateList } from '../../wire/results.js';
import { allowedUpdates, clampedInteger, integer, optional } from '../../wire/schema.js';

/**
 * Waits for updates by long polling (behaviour §9). A newer poll ends an older poll of the same bot. With `consumer`, a
 * newer poll ends only an older poll of the same consumer.
 */
export const getUpdates = defineMethod({
  name: 'getUpdates',
  effect: 'read',
  polls: true,
  consumes: true,
  summary:
    'Returns pending updates, and confirms all updates with ids below `offset`. With `timeout`, waits until there is an update.',
  params: z.object({
    offset: optional(integer()),
    limit: optional(clampedInteger(1, limits.updates_batch_max)),
    timeout: optional(clampedInteger(0, limits.poll_timeout_s_max)),
    allowed_updates: allowedUpdates,
    ...consumerParams,
  }),
  errors: [
    ...(['poll_while_webhook', 'poll_while_consumers'] as const),
    ...(['poll_terminated_by_poll', 'poll_terminated_by_webhook'] as const),
  ],
  result: updateList,
  handler: async ({ bot, store, onGone }, p) => {
    const entries = await store.polls.poll(bot.id, {
      valid: tokenCheck(store, bot),
      offset: p.offset ?? 0,
      limit: p.limit ?? limits.updates_batch_max,
      timeout: p.timeout ?? 0,
      mask: p.allowed_updates === undefined ? null : updateMask(p.allowed_updates),
      consumer: consumerOf(p),
      onGone,
    });
    // Loads the bot again, because it may have been renamed while the poll waited.
    const { profile } = botSender(entries.length === 0 ? bot : await store.bots.present(bot));
    const updates: unknown[] = [];
    let bytes = 0;
    for (const entry of entries) {
      const update = viewUpdate(entry, profile, store.time);
      bytes += Buffer.byteLength(JSON.stringify(update));
      if (bytes > limits.updates_answer_bytes_max && updates.length > 0) break;
      updates.push(update);
    }
    return updates;
  },
});

import { z } from 'zod';
import { botSender } from '../../actions/compose.js';
import { updateMask } from '../../rules/update_kinds.js';
import { defineMethod } from '../../server/method.js';
import type { Bot } from '../../store/core/control.js';
import { storeLimits as limits } from '../../store/limits.js';
import { viewUpdate } from '../../view/updates.js';
import { updateList } from '../../wire/results.js';
import { allowedUpdates, clampedInteger, integer, optional } from '../../wire/schema.js';

/** Waits for updates by long polling (behaviour §9). A newer poll ends an older poll of the same bot. */
export const getUpdates = defineMethod({
  name: 'getUpdates',
  effect: 'read',
  polls: true,
  summary:
    'Returns pending updates and confirms earlier updates. With `timeout`, waits for the first update.',
  params: z.object({
    offset: optional(integer()),
    limit: optional(clampedInteger(1, limits.updates_batch_max)),
    timeout: optional(clampedInteger(0, limits.poll_timeout_s_max)),
    allowed_updates: allowedUpdates,
  }),
  errors: ['poll_while_webhook', 'poll_terminated_by_poll', 'poll_terminated_by_webhook'],
  result: updateList,
  handler: async ({ bot, store, onGone }, p) => {
    const accepted = ({ token, state }: Bot) => token === bot.token && state === undefined;
    const entries = await store.polls.poll(bot.id, {
      valid: () => {
        const known = store.bots.present(bot);
        return known instanceof Promise ? known.then(accepted) : accepted(known);
      },
      offset: p.offset ?? 0,
      limit: p.limit ?? limits.updates_batch_max,
      timeout: p.timeout ?? 0,
      mask: p.allowed_updates === undefined ? null : updateMask(p.allowed_updates),
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

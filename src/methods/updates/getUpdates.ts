import { z } from 'zod';
import { botSender } from '../../actions/compose.js';
import { fail } from '../../errors.js';
import { updateMask } from '../../rules/update_kinds.js';
import { defineMethod } from '../../server/method.js';
import type { Bot } from '../../store/core/control.js';
import { storeLimits as limits } from '../../store/limits.js';
import { viewUpdate } from '../../view/updates.js';
import { updateList } from '../../wire/results.js';
import { allowedUpdates, clampedInteger, integer, optional, text } from '../../wire/schema.js';

const consumerName = text.regex(new RegExp(`^[A-Za-z0-9._-]{1,${limits.consumer_name_length_max}}$`), {
  error: `1 to ${limits.consumer_name_length_max} letters, digits, dots, hyphens and underscores`,
});

interface Shared {
  readonly offset?: number | undefined;
  readonly consumer?: string | undefined;
  readonly consumer_timeout?: number | undefined;
}

/** Error: `parameter_wrong` for a negative offset, because it would confirm updates of other consumers. */
function consumerOf({ consumer, consumer_timeout, offset = 0 }: Shared) {
  if (consumer === undefined) return undefined;
  if (offset < 0) fail('parameter_wrong', { name: 'offset', what: 'at least 0 if consumer is set' });
  return { name: consumer, leaseMs: (consumer_timeout ?? limits.consumer_lease_s_default) * 1_000 };
}

/**
 * Waits for updates by long polling (behaviour §9). A newer poll ends an older poll of the same bot. With `consumer`, it
 * ends only an older poll of the same consumer.
 */
export const getUpdates = defineMethod({
  name: 'getUpdates',
  effect: 'read',
  polls: true,
  consumes: true,
  summary:
    'Returns pending updates and confirms earlier updates. With `timeout`, waits for the first update.',
  params: z.object({
    offset: optional(integer()),
    limit: optional(clampedInteger(1, limits.updates_batch_max)),
    timeout: optional(clampedInteger(0, limits.poll_timeout_s_max)),
    allowed_updates: allowedUpdates,
    consumer: optional(consumerName).describe(
      `Name of a process of the bot. Up to ${limits.consumers_max} consumers share the updates; those of a chat go to one at a time`,
    ),
    consumer_timeout: optional(
      clampedInteger(limits.consumer_lease_s_default, limits.consumer_lease_s_max),
    ).describe(
      `Seconds without a poll after which the chats of the consumer move to others, ${limits.consumer_lease_s_default} (default) to ${limits.consumer_lease_s_max}`,
    ),
  }),
  errors: [
    ...(['poll_while_webhook', 'poll_while_consumers'] as const),
    ...(['poll_terminated_by_poll', 'poll_terminated_by_webhook'] as const),
  ],
  result: updateList,
  handler: async ({ bot, store, onGone }, p) => {
    const consumer = consumerOf(p);
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
      consumer,
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

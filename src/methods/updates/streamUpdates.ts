import { z } from 'zod';
import { botSender } from '../../actions/compose.js';
import { openEvents } from '../../actions/events.js';
import { consumerOf, consumerParams, tokenCheck } from '../../actions/polling.js';
import { ApiError, errorEnvelope, fail } from '../../errors.js';
import { updateMask } from '../../rules/update_kinds.js';
import { replied } from '../../server/endpoint.js';
import { defineMethod } from '../../server/method.js';
import { storeLimits as limits } from '../../store/limits.js';
import type { UpdateSink } from '../../store/updates/update_streams.js';
import { viewUpdate } from '../../view/updates.js';
import { allowedUpdates, clampedInteger, integer, optional } from '../../wire/schema.js';
import { updateEvents } from '../../wire/stream_results.js';

/** Returns the update id in the header `Last-Event-ID`, or 0 if the header contains no update id. */
const lastSeenIn = (header: string): number => (/^[0-9]{1,15}$/.test(header) ? Number(header) : 0);

/**
 * Streams updates as server-sent events, like a poll that does not end (behaviour §9). An error before the stream
 * starts is sent as an ordinary error answer. A later error is sent as the last event of the stream.
 */
export const streamUpdates = defineMethod({
  name: 'streamUpdates',
  effect: 'read',
  polls: true,
  consumes: true,
  summary:
    'Streams new updates as server-sent events. To confirm updates, call `confirmUpdates`. With `Last-Event-ID`, the stream continues after the update with this id.',
  params: z.object({
    offset: optional(integer()),
    limit: optional(clampedInteger(1, limits.updates_batch_max)).describe(
      `Number of unconfirmed updates with which the stream pauses, 1 to ${limits.updates_batch_max} (default)`,
    ),
    allowed_updates: allowedUpdates,
    ...consumerParams,
  }),
  errors: [
    ...(['poll_while_webhook', 'poll_while_consumers'] as const),
    ...(['poll_terminated_by_poll', 'poll_terminated_by_webhook'] as const),
  ],
  events: updateEvents,
  handler: async ({ bot, store, request }, p) => {
    if (request === null) return fail('method_not_found');
    let gone = false;
    let leave = () => {
      gone = true;
    };
    let events: ReturnType<typeof openEvents> | undefined;
    const begin = (): UpdateSink => {
      const opened = openEvents(
        store.time,
        request,
        () => () => undefined,
        () => leave(),
      );
      events = opened;
      opened.write('retry: 1000\n\n');
      return {
        async send(entry) {
          const { profile } = botSender(await store.bots.present(bot));
          const data = JSON.stringify(viewUpdate(entry, profile, store.time));
          opened.write(`id: ${entry.updateId}\nevent: update\ndata: ${data}\n\n`);
          return Buffer.byteLength(data);
        },
        isBlocked: opened.isBlocked,
        drained: opened.drained,
      };
    };
    const onGone = (listener: () => void) => {
      leave = listener;
      if (gone) listener();
    };
    try {
      const asked = {
        valid: tokenCheck(store, bot),
        offset: p.offset ?? 0,
        limit: p.limit ?? limits.updates_batch_max,
        mask: p.allowed_updates === undefined ? null : updateMask(p.allowed_updates),
        consumer: consumerOf(p),
        lastSeen: lastSeenIn(request.lastEventId),
        onGone,
      };
      await store.polls.stream(bot.id, asked, begin);
    } catch (error) {
      if (events === undefined) throw error;
      if (!(error instanceof ApiError)) throw error;
      events.write(`event: end\ndata: ${errorEnvelope(error)}\n\n`);
    } finally {
      events?.close();
    }
    return replied;
  },
});

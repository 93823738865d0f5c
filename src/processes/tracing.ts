/**
 * Connects traces with webhook deliveries and with a front's requests. Used only if traces are on.
 */

import type { DrainContext } from '../delivery/context.js';
import { isDelivered } from '../delivery/outcome.js';
import type { RequestListener } from '../http/exchange_context.js';
import { changeName, type Traces } from '../obs/traces.js';
import type { ApiRequest, RequestHandler } from '../server/request.js';
import { chatText, directChat, sharedChat } from '../store/core/keys.js';
import type { Delivery } from '../store/webhooks/deliveries.js';

/**
 * Returns the name of the message change that a call made. The update queue uses the same name for this change. Returns
 * null if the call's result is not a message.
 */
export function changeOf(request: Pick<ApiRequest, 'path' | 'calledBy'>, result: unknown): string | null {
  const { message_id, chat, edit_date } = (result ?? {}) as {
    readonly message_id?: unknown;
    readonly chat?: { readonly id?: unknown };
    readonly edit_date?: unknown;
  };
  const id = chat?.id;
  if (typeof message_id !== 'number' || typeof id !== 'number') return null;
  // Finds the bot and the person of a direct chat. If a bot called, `id` is the person's id. If a person called, `id`
  // is the bot's id.
  const [bot, user] = request.path.startsWith('/bot') ? [request.calledBy, id] : [id, request.calledBy];
  const ref = id < 0 ? sharedChat(id) : directChat(bot, user);
  return changeName(chatText(ref), message_id, typeof edit_date === 'number' ? edit_date : 0);
}

export function tracedRequests(traces: Traces, handler: RequestHandler, meter: RequestListener) {
  return {
    handler: ((request) =>
      traces.within(
        request.traceparent,
        () => request.calledBy !== 0,
        () => handler(request),
      )) satisfies RequestHandler,
    meter: {
      weight: () => meter.weight(),
      over(call: string, status: number, ms: number, weight: number) {
        meter.over(call, status, ms, weight);
        traces.over(call, status);
      },
    },
  };
}

/** Sets the header `traceparent` in the answer to a poll. Uses the trace of the first update that has a known trace. */
function traceBatch(traces: Traces, request: ApiRequest, updates: readonly object[]): void {
  for (const update of updates) {
    const [, [kind = '', message] = []] = Object.entries(update);
    const { edit_date, ...made } = (message ?? {}) as Record<string, unknown>;
    const change = changeOf(request, kind.startsWith('edited') ? { ...made, edit_date } : made);
    const header = change === null ? undefined : traces.polled(request.calledBy, kind, change);
    if (header === undefined) continue;
    request.answerTraceparent = header;
    return;
  }
}

export const traceResults = (traces: Traces) => (request: ApiRequest, result: unknown) => {
  if (request.called === 'getUpdates') return traceBatch(traces, request, result as readonly object[]);
  const change = changeOf(request, result);
  if (change !== null) traces.changed(change);
};

function changeOfDelivery({ entry }: Delivery): string {
  const { chat, id, record } = entry.message;
  return changeName(
    chatText(chat),
    id,
    entry.kind.startsWith('edited') ? Math.floor(record.editedAt / 1_000) : 0,
  );
}

/** Returns the header `traceparent` of a delivery. */
export const traceparentOf =
  (traces: Traces): NonNullable<DrainContext['traceparent']> =>
  (bot, delivery) =>
    traces.traceparent(bot, delivery.entry.kind, changeOfDelivery(delivery));

export const traceDeliveries =
  (traces: Traces): NonNullable<DrainContext['onOutcome']> =>
  (bot, delivery, outcome, _, { tries }) => {
    if (outcome === null) return;
    const { entry, made } = delivery;
    traces.delivery({
      ...{ bot, kind: entry.kind, change: changeOfDelivery(delivery), madeMs: made, tries },
      latencyMs: outcome.latencyMs,
      outcome: outcome.kind === 'answered' ? String(outcome.status) : outcome.reason,
      delivered: isDelivered(outcome),
    });
  };

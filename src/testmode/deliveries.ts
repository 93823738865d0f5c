/** Records the webhook deliveries of all worlds, and applies the faults that tests request. */
import type { Send } from '../delivery/context.js';
import type { Outcome } from '../delivery/outcome.js';
import type { Time } from '../time.js';
import { type Fault, type Faults, onDelivery } from './faults.js';
import type { Recording } from './recording.js';
import type { World } from './worlds.js';

export interface DeliveryContext {
  readonly recording: Recording;
  readonly faults: Faults;
  readonly time: Time;
  /** The bots with a delivery that a fault delays. A bot appears once for each such delivery. */
  readonly delayed: number[];
  readonly worldOf: (bot: number) => World | undefined;
}

/** Returns the bot that a delivery belongs to. `webhook-id` has the bot's id, a hyphen and the update's id. */
const botOf = (headers: Readonly<Record<string, string>>) => Number.parseInt(headers['webhook-id'] ?? '', 10);

const replaced = ({ status = 0, retry_after }: Fault): Outcome => ({
  ...{ kind: 'answered', status, body: Buffer.alloc(0), truncated: false, latencyMs: 0, address: '' },
  retryAfterMs: retry_after === undefined ? undefined : retry_after * 1_000,
});

function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return body.toString();
  }
}

const answerOf = (outcome: Outcome) =>
  outcome.kind === 'answered' ? jsonOf(outcome.body) : { error: outcome.message };

/** Returns an update's kind, which is the name of its field other than `update_id`. */
const kindOf = (update: object) => Object.keys(update).find((name) => name !== 'update_id') ?? '';

/**
 * Wraps the function that sends a delivery. The wrapper records the delivery and applies the faults that tests request.
 */
export function createTestSend(
  { recording, faults, time, delayed, worldOf }: DeliveryContext,
  send: Send,
): Send {
  const delay = async (bot: number, ms: number, signal: AbortSignal | undefined) => {
    delayed.push(bot);
    await time.sleep(ms, { signal });
    delayed.splice(delayed.indexOf(bot), 1);
  };
  return async (receiver, headers, body, signal, maySend) => {
    const bot = botOf(headers);
    const world = worldOf(bot);
    if (world === undefined) return send(receiver, headers, body, signal, maySend);
    const fault = faults.take(world.id, onDelivery);
    if (fault !== undefined && fault.delay_ms > 0) await delay(bot, fault.delay_ms, signal);
    const isReplaced = fault?.status !== undefined;
    const real =
      !isReplaced || fault.applied ? await send(receiver, headers, body, signal, maySend) : undefined;
    const outcome = isReplaced || real === undefined ? replaced(fault as Fault) : real;
    const update = JSON.parse(body.toString());
    recording.add(world.id, {
      ...{ kind: 'delivery', name: kindOf(update), params: update },
      status: outcome.kind === 'answered' ? outcome.status : 0,
      answer: answerOf(outcome),
      ...(isReplaced && { fault: fault.applied ? 'answer lost' : 'not done' }),
    });
    return outcome;
  };
}

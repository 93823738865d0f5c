/** One attempt to deliver one update: its bytes are built once, signed, and sent as signed (law 8). */
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';
import { botProfile } from '../store/core/profiles.js';
import type { Store } from '../store/store.js';
import type { DeadReason, Delivery } from '../store/webhooks/deliveries.js';
import type { Webhook } from '../store/webhooks/webhooks.js';
import { viewUpdate } from '../view/updates.js';
import type { DrainContext } from './context.js';
import { type Receiver, receiverOf } from './outbound/send.js';
import { makeSigner } from './outbound/sign.js';
import type { Outcome } from './outcome.js';

const nothing = Buffer.alloc(0);

/** Where the updates of a bot go, and what they carry. */
export interface Destination {
  readonly receiver: Receiver;
  readonly sign: ReturnType<typeof makeSigner>;
  /** What must not be shown again if the receiver repeats it. */
  readonly secrets: readonly string[];
}

export function destinationOf(
  { url, certificate, signing, secretToken }: Webhook,
  service: string,
): Destination {
  const [secret = '', formerSecret] = signing;
  return {
    receiver: receiverOf(url, certificate ?? undefined),
    sign: makeSigner({ secret, formerSecret, secretToken: secretToken ?? undefined }, service),
    secrets: [url, ...signing, ...(secretToken === null ? [] : [secretToken])],
  };
}

/** An update that is handled in this process counts as taken once it was handled. */
async function attemptInside(
  handle: (delivery: Delivery) => Promise<void>,
  delivery: Delivery,
): Promise<Outcome> {
  const began = performance.now();
  try {
    await handle(delivery);
  } catch (error) {
    const message = error instanceof ApiError ? error.message : 'Internal error';
    return { kind: 'failed', reason: 'closed', message, latencyMs: performance.now() - began };
  }
  const latencyMs = performance.now() - began;
  return {
    ...{ kind: 'answered', status: 200, retryAfterMs: undefined, body: nothing, truncated: false },
    ...{ latencyMs, address: '' },
  };
}

type AttemptContext = Pick<DrainContext, 'send' | 'inside' | 'onError'> & {
  readonly store: Pick<Store, 'auth'>;
};

/** The outcome, or why the update is never sent. `nowMs` is Redis' time. */
export async function attempt(
  { store, send, inside, onError }: AttemptContext,
  bot: number,
  { receiver, sign }: Destination,
  delivery: Delivery,
  nowMs: number,
  signal: AbortSignal,
): Promise<Outcome | DeadReason> {
  if (nowMs - delivery.made >= limits.webhook_retry_age_ms_max) return 'expired';
  try {
    const handle = inside?.(bot);
    if (handle) return await attemptInside(handle, delivery);
    const { entry } = delivery;
    // The bot may have got another name while the update waited.
    const known = store.auth.botById(bot);
    const found = known instanceof Promise ? await known : known;
    const profile = botProfile(found ?? { id: bot, name: '', username: '', names: {} });
    // A receiver that has seen the update before may drop it by its id.
    const shown = { ...entry, updateId: entry.shownId };
    const body = Buffer.from(JSON.stringify(viewUpdate(shown, profile)));
    if (body.length > limits.webhook_body_bytes_max) return 'too_large';
    const nowS = Math.floor(nowMs / 1_000);
    const headers = sign({ botId: String(bot), updateId: entry.shownId, body, nowS });
    return await send(receiver, headers, body, signal);
  } catch (thrown) {
    // Nothing of the receiver's: it is tried again.
    onError(thrown);
    return { kind: 'failed', reason: 'busy', message: 'Internal error', latencyMs: 0 };
  }
}

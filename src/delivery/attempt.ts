/**
 * Makes one attempt to deliver one update. Builds the body only once, so that the signature covers exactly the bytes
 * that are sent (law 8).
 */
import { ApiError } from '../errors.js';
import type { RetryPolicy } from '../rules/retry_policy.js';
import { isBlocked } from '../store/core/control.js';
import { botProfile } from '../store/core/profiles.js';
import type { Store } from '../store/store.js';
import type { DeadReason, Delivery } from '../store/webhooks/deliveries.js';
import type { Webhook } from '../store/webhooks/webhooks.js';
import type { Time } from '../time.js';
import { viewUpdate } from '../view/updates.js';
import type { DrainContext } from './context.js';
import { deliveryLimits as limits } from './limits.js';
import { type Receiver, receiverOf } from './outbound/send.js';
import { makeSigner, type SignerOptions } from './outbound/sign.js';
import type { Outcome } from './outcome.js';
import { ageMaxOf } from './schedule.js';

const nothing = Buffer.alloc(0);

export interface Destination {
  readonly receiver: Receiver;
  readonly sign: ReturnType<typeof makeSigner>;
  readonly secrets: readonly string[];
  readonly retry: RetryPolicy | null;
}

export function destinationOf(
  { url, certificate, signing, secretToken, retry = null, replay }: Webhook,
  signer: SignerOptions,
): Destination {
  const sign = makeSigner(
    { secret: signing[0] ?? '', formerSecret: signing[1], secretToken: secretToken ?? undefined },
    signer,
  );
  const receiver = receiverOf(url, certificate ?? undefined);
  const { authorization } = receiver.target;
  return {
    receiver,
    sign:
      replay === undefined
        ? sign
        : (update) => ({ ...sign(update), [`X-${signer.service}-Replay`]: String(replay.id) }),
    secrets: [
      url,
      ...signing,
      ...(secretToken === null ? [] : [secretToken]),
      ...(authorization === undefined ? [] : [authorization.slice('Basic '.length)]),
    ],
    retry,
  };
}

async function attemptInside(
  time: Time,
  handle: (delivery: Delivery) => Promise<void>,
  delivery: Delivery,
): Promise<Outcome> {
  const began = time.monotonic();
  try {
    await handle(delivery);
  } catch (error) {
    const message = error instanceof ApiError ? error.message : 'Internal error';
    return { kind: 'failed', reason: 'closed', message, latencyMs: time.monotonic() - began };
  }
  const latencyMs = time.monotonic() - began;
  return {
    ...{ kind: 'answered', status: 200, retryAfterMs: undefined, body: nothing, truncated: false },
    ...{ latencyMs, address: '' },
  };
}

type AttemptContext = Pick<DrainContext, 'time' | 'send' | 'inside' | 'traceparent' | 'onError'> & {
  readonly store: Pick<Store, 'auth'>;
};

/**
 * Makes the attempt. Returns its outcome, or the reason why the update can never be sent. Calls `maySend` after reading
 * the bot and after waiting for a connection, because the lease may have ended or the settings may have changed.
 * Returns `late` if `maySend` returns false. `nowMs` is the time of Redis.
 */
export async function attempt(
  { time, store, send, inside, traceparent, onError }: AttemptContext,
  bot: number,
  { receiver, sign, retry }: Destination,
  delivery: Delivery,
  nowMs: number,
  maySend: () => boolean,
  signal: AbortSignal,
): Promise<Outcome | DeadReason | 'blocked' | 'late'> {
  if (nowMs - delivery.made >= ageMaxOf(delivery.entry.kind, retry)) return 'expired';
  try {
    const handle = inside?.(bot);
    if (handle) return await attemptInside(time, handle, delivery);
    const { entry } = delivery;
    // Reads the bot again, because the bot may have been renamed or blocked while the update was queued.
    const known = store.auth.botById(bot);
    const found = known instanceof Promise ? await known : known;
    if (isBlocked(found)) return 'blocked';
    if (!maySend()) return 'late';
    const profile = botProfile(found ?? { id: bot, name: '', username: '', names: {} });
    // Uses the original id even for a repeated update, because receivers detect a repeated update by its id.
    const shown = { ...entry, updateId: entry.shownId };
    const body = Buffer.from(JSON.stringify(viewUpdate(shown, profile, time)));
    if (body.length > limits.webhook_body_bytes_max) return 'too_large';
    const nowS = Math.floor(nowMs / 1_000);
    const headers = sign({ botId: String(bot), updateId: entry.shownId, body, nowS });
    const parent = traceparent?.(bot, delivery);
    let isLate = false;
    const outcome = await send(
      receiver,
      parent === undefined ? headers : { traceparent: parent, ...headers },
      body,
      signal,
      () => {
        isLate = !maySend();
        return !isLate;
      },
    );
    return isLate ? 'late' : outcome;
  } catch (thrown) {
    // The fault is in this process, so the update is retried.
    onError(thrown);
    return { kind: 'failed', reason: 'busy', message: 'Internal error', latencyMs: 0 };
  }
}

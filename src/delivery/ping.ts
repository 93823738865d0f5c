/** Sends test requests (pings) to webhooks for the owners. A ping affects neither the queue nor the deliveries. */
import { fail } from '../errors.js';
import { ruleLimits } from '../rules/limits.js';
import type { Pings } from '../server/endpoint.js';
import { mayAct } from '../store/core/control.js';
import type { Webhook } from '../store/webhooks/webhooks.js';
import type { Time } from '../time.js';
import { destinationOf } from './attempt.js';
import { deliveryLimits as limits } from './limits.js';
import { type Exchange, exchange, type StepTimes } from './outbound/exchange.js';
import type { Guard } from './outbound/guard.js';
import { beginningOf, shownAnswer } from './outbound/redact.js';
import type { Headers, SignerOptions } from './outbound/sign.js';
import { errorMessageOf, isDelivered } from './outcome.js';

export interface PingOptions {
  readonly guard: Guard;
  readonly signer: SignerOptions;
  readonly time: Time;
  /** Returns true during a drill, when nothing is sent to webhooks. */
  readonly held: () => boolean;
}

type Ping = Awaited<ReturnType<Pings['send']>>;

/** Matches the headers whose values are not secret and may therefore be shown. */
const isPlain = /^(host|connection|content-type|content-length|webhook-id|webhook-timestamp|x-.*-ping)$/i;

/**
 * Returns the request's headers in the order in which they are sent. The HTTP client adds Host and Connection before
 * them, and Content-Length after them.
 */
function requestHeaders(origin: string, headers: Headers, body: Buffer): Ping['request']['headers'] {
  const sent = {
    ...{ host: new URL(origin).host, connection: 'keep-alive' },
    ...headers,
    'content-length': String(body.length),
  };
  return Object.entries(sent).map(([name, value]) => ({ name, value: isPlain.test(name) ? value : null }));
}

/** Returns the answer's headers with secrets masked. Leaves out each header that exceeds the limits. */
function shownHeaders(headers: Exchange['headers'], secrets: readonly string[]) {
  let room = limits.webhook_ping_headers_bytes_max;
  const fitting = headers.filter(([name, value]) => {
    const bytes = Buffer.byteLength(name) + Buffer.byteLength(value);
    if (bytes > room) return false;
    room -= bytes;
    return true;
  });
  return fitting.slice(0, limits.webhook_ping_headers_max).map(([name, value]) => {
    const bytes = Buffer.from(value);
    return { name, value: shownAnswer(bytes, secrets, bytes.length) };
  });
}

function answerOf({ outcome, headers }: Exchange, secrets: readonly string[]): Ping['answer'] {
  if (outcome.kind === 'failed') return null;
  const shown = shownHeaders(headers, secrets);
  const bytesMax = ruleLimits.ping_answer_shown_bytes;
  return {
    headers: shown,
    omitted_headers: headers.length - shown.length,
    body: shownAnswer(beginningOf(outcome.body, bytesMax), secrets, bytesMax),
    truncated: outcome.truncated || outcome.body.length > bytesMax,
  };
}

const rounded = (times: StepTimes) =>
  Object.fromEntries(Object.entries(times).map(([step, ms]) => [`${step}_ms`, Math.round(ms)]));

/**
 * Builds the body of a ping. Client libraries treat the ping as an update of an unknown kind, and ignore the ping
 * (decision 0076).
 */
const bodyOf = (bot: number, nowS: number) =>
  Buffer.from(JSON.stringify({ update_id: 0, ping: { bot_id: bot, date: nowS } }));

async function ping(bot: number, webhook: Webhook, { guard, signer, time }: PingOptions): Promise<Ping> {
  const { receiver, sign, secrets } = destinationOf(webhook, signer);
  const { origin, authorization } = receiver.target;
  const nowMs = time.now();
  const nowS = Math.floor(nowMs / 1_000);
  const body = bodyOf(bot, nowS);
  const headers = {
    ...sign({ botId: String(bot), updateId: `ping-${nowMs}`, body, nowS }),
    [`X-${signer.service}-Ping`]: '1',
    ...(authorization === undefined ? {} : { Authorization: authorization }),
  };
  const deadlineMs = limits.webhook_ping_ms_max;
  const exchanged = await exchange(receiver, headers, body, { guard, time, deadlineMs });
  const { outcome, times } = exchanged;
  const delivered = isDelivered(outcome);
  return {
    delivered,
    status: outcome.kind === 'answered' ? outcome.status : null,
    error: delivered ? null : errorMessageOf(outcome),
    latency_ms: Math.round(outcome.latencyMs),
    times: rounded(times),
    request: { headers: requestHeaders(origin, headers, body), body: body.toString() },
    answer: answerOf(exchanged, secrets),
  };
}

/**
 * Creates the function that sends this process's pings. At most one ping per bot and limits.webhook_pings_max pings in
 * all are in flight.
 */
export function createPings(options: PingOptions): Pings {
  const open = new Set<number>();
  return {
    async send(bot, webhook, count) {
      if (options.held() || !mayAct(bot)) fail('deliveries_paused');
      const { id } = bot;
      if (open.has(id) || open.size >= limits.webhook_pings_max)
        fail('too_many_requests', { retry_after: 1 });
      open.add(id);
      try {
        await count();
        return await ping(id, webhook, options);
      } finally {
        open.delete(id);
      }
    },
  };
}

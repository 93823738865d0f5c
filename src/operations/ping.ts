/** Sends a test request to a webhook (task `webhooks ping`). */
import { webhookNamed } from '../actions/webhooks.js';
import { createReceivers } from '../delivery/outbound/receivers.js';
import { createPings } from '../delivery/ping.js';
import { ApiError } from '../errors.js';
import { type Backends, StartError } from '../processes/backends.js';
import { signerOf } from '../processes/signer.js';
import type { Bot } from '../store/core/control.js';
import { findBot } from './webhooks.js';

const say = (line: string) => process.stdout.write(`${line}\n`);

/**
 * Sends a ping and returns the result that the owner would get. The limit for owners does not apply. Throws a
 * StartError instead of an ApiError.
 */
async function pinged({ config, time, held, store }: Backends, bot: Bot, route: string | undefined) {
  const { guard } = createReceivers(config.WEBHOOK_ALLOW_CIDRS, config.WEBHOOK_DENY_CIDRS, time);
  const pings = createPings({ guard, signer: signerOf(config), time, held });
  try {
    return await pings.send(bot, await webhookNamed(store, bot.id, route), () => Promise.resolve());
  } catch (error) {
    throw error instanceof ApiError ? new StartError(error.message) : error;
  }
}

/**
 * Sends a ping from this machine. Hides the receiver's answer, because only the bot's owner may read it. Exits with 1
 * if a delivery with this answer would count as a failure.
 */
export async function ping(
  backends: Backends,
  name: string,
  { route }: { readonly route?: string },
): Promise<void> {
  const bot = await findBot(backends, name);
  const { delivered, status, error, latency_ms, times } = await pinged(backends, bot, route);
  say(error ?? `delivered with ${status}`);
  const steps = Object.entries(times).map(([step, ms]) => `${step.replace('_ms', '')} ${ms} ms`);
  say([`duration ${latency_ms} ms`, ...steps].join(', '));
  if (!delivered) process.exitCode = 1;
}

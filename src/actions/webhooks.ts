/** Reads or deletes a webhook for the methods and endpoints. */

import { fail } from '../errors.js';
import { ruleLimits } from '../rules/limits.js';
import { defaultUpdateMask, maskNames } from '../rules/update_kinds.js';
import { Described } from '../server/method.js';
import { parseChat } from '../store/core/keys.js';
import { queueId } from '../store/core/queue_ids.js';
import type { Route } from '../store/core/route_record.js';
import { storeLimits as limits } from '../store/limits.js';
import type { Store } from '../store/store.js';
import type { Webhook } from '../store/webhooks/webhooks.js';

/** Deletes a webhook. The description in the result says whether a webhook existed (behaviour §10). */
export async function removeWebhook(store: Store, bot: number, drop: boolean): Promise<Described> {
  const removed = await store.webhooks.remove(bot, drop);
  return new Described(true, removed ? 'Webhook was deleted' : 'Webhook is already deleted');
}

/** Returns how a bot receives updates, for calls by the bot or its owner. The URL is empty while the bot polls. */
export async function webhookState(store: Store, bot: number) {
  const [webhook, info] = await Promise.all([store.webhooks.find(bot), store.queues.info(bot)]);
  const { pending, mask, error, strayed } = info;
  return {
    url: webhook?.url ?? '',
    has_custom_certificate: webhook !== null && webhook.certificate !== null,
    pending_update_count: pending,
    last_error_date: (webhook && error?.date) ?? null,
    last_error_message: (webhook && error?.message) ?? null,
    max_connections: webhook?.maxConnections ?? limits.webhook_connections_default,
    ...(webhook?.retry ? { retry_policy: webhook.retry } : {}),
    ...(webhook?.address ? { ip_address: webhook.address } : {}),
    ...(webhook && strayed !== null ? { last_synchronization_error_date: strayed } : {}),
    ...(mask === defaultUpdateMask ? {} : { allowed_updates: maskNames(mask) }),
  };
}

/** Returns a filter for delivery attempts. `status` is `delivered`, `failed` or an HTTP status. */
export function outcomeFilter(status: string | undefined) {
  const named = status === 'delivered' || status === 'failed';
  return {
    delivered: named ? status === 'delivered' : null,
    status: named || status === undefined ? null : Number(status),
  };
}

/** Returns the route with this name, or undefined if no name is given. Error: `route_not_found`. */
export async function routeNamed(store: Store, bot: number, name?: string): Promise<Route | undefined> {
  if (name === undefined) return undefined;
  const found = (await store.webhooks.routes(bot)).find((route) => route.name === name);
  return found ?? fail('route_not_found');
}

/** Returns the webhook of a bot, or of its route with this name. Errors: `webhook_not_set`, `route_not_found`. */
export async function webhookNamed(store: Store, bot: number, name?: string): Promise<Webhook> {
  const route = await routeNamed(store, bot, name);
  return (await store.webhooks.find(queueId(bot, route?.slot ?? 0))) ?? fail('webhook_not_set');
}

/** Returns the routes of a bot in order, with the state of their queues. */
export async function webhookRouteStates(store: Store, bot: number) {
  const routes = await store.webhooks.routeStates(bot);
  return routes.map(
    ({ name, url, certificate, maxConnections, address, retry, mask, chats, percent, commands, info }) => ({
      name,
      url,
      has_custom_certificate: certificate !== null,
      pending_update_count: info.pending,
      dead_letter_count: info.dead,
      last_error_date: info.error?.date ?? null,
      last_error_message: info.error?.message ?? null,
      next_try_date: info.nextTryAt === null ? null : Math.ceil(info.nextTryAt / 1_000),
      max_connections: maxConnections,
      ...(retry === null ? {} : { retry_policy: retry }),
      ...(address === null ? {} : { ip_address: address }),
      ...(mask === defaultUpdateMask ? {} : { allowed_updates: maskNames(mask) }),
      ...(chats === null ? {} : { chat_ids: chats.map((chat) => peerOf(chat)) }),
      ...(percent === ruleLimits.route_percent_max ? {} : { percent }),
      ...(commands ? { commands: [...commands.names] } : {}),
    }),
  );
}

/** Returns the id of a chat as the bot sees it: a direct chat has the id of the person. */
function peerOf(chat: string): number {
  const { id, user } = parseChat(chat);
  return user === 0 ? id : user;
}

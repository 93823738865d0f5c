/** Reads or deletes a webhook for the methods and endpoints. */

import { defaultUpdateMask, maskNames } from '../rules/update_kinds.js';
import { Described } from '../server/method.js';
import { storeLimits as limits } from '../store/limits.js';
import type { Store } from '../store/store.js';

/** Deletes a webhook. The description in the response says whether a webhook existed (behaviour §10). */
export async function removeWebhook(store: Store, bot: number, drop: boolean): Promise<Described> {
  const removed = await store.webhooks.remove(bot, drop);
  return new Described(true, removed ? 'Webhook was deleted' : 'Webhook is already deleted');
}

/** Returns how a bot receives updates, for the bot or its owner. The URL is empty while the bot polls. */
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
    ...(webhook?.address ? { ip_address: webhook.address } : {}),
    ...(webhook && strayed !== null ? { last_synchronization_error_date: strayed } : {}),
    ...(mask === defaultUpdateMask ? {} : { allowed_updates: maskNames(mask) }),
  };
}

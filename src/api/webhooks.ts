/** What methods that end webhook mode have in common. */
import type { Store } from '../store/store.js';
import { Described } from './method.js';

/** Deletes a webhook, or says that there was none (behaviour §10). */
export async function removeWebhook(store: Store, bot: number, drop: boolean): Promise<Described> {
  const removed = await store.webhooks.remove(bot, drop);
  return new Described(true, removed ? 'Webhook was deleted' : 'Webhook is already deleted');
}

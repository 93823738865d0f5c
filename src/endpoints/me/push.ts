/** Manages push subscriptions. A subscribed browser shows new messages even when no window is open (behaviour §11). */
import { z } from 'zod';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { storeLimits as limits } from '../../store/limits.js';
import { pushState } from '../../wire/account_results.js';
import { text } from '../../wire/schema.js';

const path = '/api/me/push';

export const showPush = defineEndpoint({
  verb: 'GET',
  path,
  summary:
    'Returns how many push subscriptions the caller has. If push notifications are on, also returns the public key for new subscriptions.',
  params: z.object({}),
  result: pushState,
  handler: async ({ user, store, push }) => ({
    ...(push === null ? {} : { public_key: push.publicKey }),
    subscriptions: (await store.push.subscriptions(user.id)).length,
  }),
});

export const subscribePush = defineEndpoint({
  verb: 'POST',
  path,
  summary: `Subscribes a browser to notifications. Notifications are sent while the caller has no window open. The request body is the JSON of a \`PushSubscription\`. A person can have ${limits.push_subscriptions_max} subscriptions. An additional subscription replaces the oldest subscription.`,
  params: z.object({
    endpoint: text.describe('HTTPS URL at the push service'),
    keys: z.object({ p256dh: text, auth: text }).describe('Keys of the browser, base64url'),
  }),
  errors: ['push_off', 'push_subscription_invalid'],
  handler: async ({ user, store, push, request }, { endpoint, keys }) => {
    if (push === null) return fail('push_off');
    const token = request.authorization.replace(/^bearer /i, '').trim();
    const count = () => store.lookUps.take(user.id, null);
    await store.push.subscribe(user.id, await push.read({ endpoint, ...keys }, count), token);
  },
});

export const unsubscribePush = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Removes the push subscription of a browser.',
  params: z.object({ endpoint: text.describe('Endpoint URL of the subscription') }),
  handler: ({ user, store }, { endpoint }) => store.push.unsubscribe(user.id, endpoint),
});

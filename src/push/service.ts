/** Push notifications in a front: the public key, and the check of a browser's subscription. */

import type { Guard } from '../delivery/outbound/guard.js';
import { ApiError, fail } from '../errors.js';
import { limits } from '../limits.js';
import type { PushService } from '../server/endpoint.js';
import { usableKeys } from './encrypt.js';
import { publicKeyOf } from './vapid.js';

const base64url = /^[A-Za-z0-9_-]+={0,2}$/;

const bytesOf = (text: string): Buffer =>
  base64url.test(text) ? Buffer.from(text, 'base64url') : Buffer.alloc(0);

/** `privateKey`: setting VAPID_PRIVATE_KEY. */
export function createPushService(privateKey: string, guard: Pick<Guard, 'vet'>): PushService {
  return {
    publicKey: publicKeyOf(privateKey),
    async read({ endpoint, p256dh, auth }, count) {
      const keys = { p256dh: bytesOf(p256dh), auth: bytesOf(auth) };
      if (endpoint.length > limits.push_endpoint_length_max || !usableKeys(keys))
        return fail('push_subscription_invalid');
      try {
        await guard.vet(endpoint, count);
      } catch (error) {
        if (error instanceof ApiError && /^(too_many_requests|unavailable)$/.test(error.kind)) throw error;
        // The name server may be temporarily away. Each delivery resolves the name again.
        if (!(error instanceof ApiError) || error.kind !== 'webhook_host_unresolved')
          return fail('push_subscription_invalid');
      }
      return { endpoint, ...keys };
    },
  };
}

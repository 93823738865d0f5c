/** A front's part of push notifications: returns the public key and checks a browser's subscription. */

import type { Guard } from '../delivery/outbound/guard.js';
import { ApiError, fail } from '../errors.js';
import type { PushService } from '../server/endpoint.js';
import { usableKeys } from './encrypt.js';
import { pushLimits as limits } from './limits.js';
import { publicKeyOf } from './vapid.js';

const base64url = /^[A-Za-z0-9_-]+={0,2}$/;

const bytesOf = (text: string): Buffer =>
  base64url.test(text) ? Buffer.from(text, 'base64url') : Buffer.alloc(0);

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
        // Accepts a subscription whose host cannot be found now. The name server may be unavailable for a moment, and
        // each delivery looks up the name again.
        if (!(error instanceof ApiError) || error.kind !== 'webhook_host_unresolved')
          return fail('push_subscription_invalid');
      }
      return { endpoint, ...keys };
    },
  };
}

/**
 * Identifies the installation to push services (RFC 8292), with its key and a token for each service. Decision 0027
 * says why Petrel does not use the package `web-push`.
 */

import { createECDH } from 'node:crypto';
import { importJWK, SignJWT } from 'jose';
import { systemTime } from '../time.js';
import { pushLimits as limits } from './limits.js';

export interface VapidSettings {
  /** The setting VAPID_PRIVATE_KEY: 32 bytes as base64url. */
  readonly privateKey: string;
  /** The operator's contact: a mailto: or https: URL. */
  readonly subject: string;
}

/** Returns the public key with which browsers subscribe: an uncompressed P-256 point as base64url. */
export function publicKeyOf(privateKey: string): string {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(Buffer.from(privateKey, 'base64url'));
  return ecdh.getPublicKey().toString('base64url');
}

export type Vapid = ReturnType<typeof createVapid>;

export function createVapid({ privateKey, subject }: VapidSettings, time = systemTime) {
  const publicKey = publicKeyOf(privateKey);
  const point = Buffer.from(publicKey, 'base64url');
  const jwk = {
    ...{ kty: 'EC', crv: 'P-256', d: privateKey },
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  };
  const key = importJWK(jwk, 'ES256');
  const kept = new Map<string, { readonly text: Promise<string>; readonly until: number }>();

  async function sign(origin: string, exp: number): Promise<string> {
    const token = await new SignJWT({})
      .setProtectedHeader({ typ: 'JWT', alg: 'ES256' })
      .setAudience(origin)
      .setExpirationTime(exp)
      .setSubject(subject)
      .sign(await key);
    return `vapid t=${token}, k=${publicKey}`;
  }

  return {
    /** Returns the `Authorization` header. Each token is signed once and used for many messages. */
    authorization(origin: string): Promise<string> {
      const now = time.nowSeconds();
      const known = kept.get(origin);
      if (known !== undefined && known.until > now) return known.text;
      kept.delete(origin);
      for (const oldest of kept.keys()) {
        if (kept.size < limits.push_vapid_kept_max) break;
        kept.delete(oldest);
      }
      const text = sign(origin, now + limits.push_vapid_ttl_s);
      kept.set(origin, { text, until: now + limits.push_vapid_ttl_s / 2 });
      return text;
    },
  };
}

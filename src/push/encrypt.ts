/** What a push service is sent: a payload that only the browser can read (RFC 8291), with a time to live and a topic (RFC 8030). */
import { createECDH, createHash } from 'node:crypto';
import { encrypt } from 'http_ece';
import { limits } from '../limits.js';

export interface BrowserKeys {
  readonly p256dh: Buffer;
  readonly auth: Buffer;
}

/** The body of a push. Under a key of its own each time: two pushes have nothing in common. */
export function seal(payload: unknown, { p256dh, auth }: BrowserKeys): Buffer {
  const sender = createECDH('prime256v1');
  sender.generateKeys();
  return encrypt(Buffer.from(JSON.stringify(payload)), {
    version: 'aes128gcm',
    privateKey: sender,
    dh: p256dh.toString('base64url'),
    authSecret: auth.toString('base64url'),
  });
}

/** Whether a browser's keys are such, so that everything can be encrypted for them. */
export function usableKeys({ p256dh, auth }: BrowserKeys): boolean {
  if (auth.length !== 16 || p256dh.length !== 65 || p256dh[0] !== 4) return false;
  try {
    seal('', { p256dh, auth });
    return true;
  } catch {
    // Not a point of the curve.
    return false;
  }
}

/**
 * Of the pushes that wait for a browser the newest of each chat is kept. The push service sees that two are of one topic: it is made
 * with the browser's secret, so that nobody else can tell of which.
 */
export function headersOf(chat: number, authorization: string, auth: Buffer): Record<string, string> {
  return {
    Authorization: authorization,
    'Content-Encoding': 'aes128gcm',
    'Content-Type': 'application/octet-stream',
    TTL: String(limits.push_ttl_s),
    Topic: createHash('sha256').update(auth).update(`topic ${chat}`).digest('base64url').slice(0, 32),
    Urgency: 'high',
  };
}

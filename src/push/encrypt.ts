/**
 * Builds a web push message with its headers. Only the browser can decrypt its payload (RFC 8291). The message has a
 * TTL and a topic (RFC 8030).
 */
import { createECDH, createHash } from 'node:crypto';
import { encrypt } from 'http_ece';
import { pushLimits as limits } from './limits.js';

export interface BrowserKeys {
  readonly p256dh: Buffer;
  readonly auth: Buffer;
}

/**
 * Encrypts a push message. Each message is encrypted with a new key, so that messages cannot be linked with each other.
 */
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

export function usableKeys({ p256dh, auth }: BrowserKeys): boolean {
  if (auth.length !== 16 || p256dh.length !== 65 || p256dh[0] !== 4) return false;
  try {
    seal('', { p256dh, auth });
    return true;
  } catch {
    // An error means that the bytes of the key are not a point on the curve.
    return false;
  }
}

/**
 * Returns a push message's headers. A push service keeps only the newest pending message of each topic, so each chat
 * has its own topic. The topic is derived from the browser's secret, so that the push service cannot identify the chat.
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

/** Builds a web push: a payload that only the browser can read (RFC 8291), with TTL and topic (RFC 8030). */
import { createECDH, createHash } from 'node:crypto';
import { encrypt } from 'http_ece';
import { limits } from '../limits.js';

export interface BrowserKeys {
  readonly p256dh: Buffer;
  readonly auth: Buffer;
}

/** The encrypted body of a push. Uses a new key each time, so pushes cannot be linked. */
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

/** Whether a browser's keys are valid for encryption. */
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
 * The headers of a push. Of the waiting pushes with one topic, the push service keeps the newest, so each chat has a
 * topic. It is derived with the browser's secret, so the push service cannot tell which chat it is.
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

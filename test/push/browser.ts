/**
 * Simulates a browser that is subscribed to push messages: its keys, and the decryption of a push message (RFC 8291,
 * RFC 8292).
 */
import {
  createDecipheriv,
  createECDH,
  createPublicKey,
  hkdfSync,
  randomBytes,
  verify as verifySignature,
} from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface Push {
  readonly device: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Browser {
  readonly device: string;
  /** The subscription in the format of `PushSubscription.toJSON()`. */
  readonly subscription: { readonly endpoint: string; readonly expirationTime: null; readonly keys: object };
  /** Returns the data that the service worker gets. Throws if the push was not encrypted for this browser. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read any of its fields
  read(push: Push): any;
}

let count = 0;

const hkdf = (secret: Buffer, salt: Buffer, info: Buffer | string, length: number) =>
  Buffer.from(hkdfSync('sha256', secret, salt, info, length));

export function makeBrowser(origin: string): Browser {
  const ecdh = createECDH('prime256v1');
  const own = ecdh.generateKeys();
  const auth = randomBytes(16);
  const device = `device-${++count}`;
  return {
    device,
    subscription: {
      endpoint: `${origin}/${device}`,
      expirationTime: null,
      keys: { p256dh: own.toString('base64url'), auth: auth.toString('base64url') },
    },
    read({ body }) {
      const salt = body.subarray(0, 16);
      const length = body[20] as number;
      const sender = body.subarray(21, 21 + length);
      const sealed = body.subarray(21 + length);
      const info = Buffer.concat([Buffer.from('WebPush: info\0'), own, sender]);
      const secret = hkdf(ecdh.computeSecret(sender), auth, info, 32);
      const key = hkdf(secret, salt, 'Content-Encoding: aes128gcm\0', 16);
      const nonce = hkdf(secret, salt, 'Content-Encoding: nonce\0', 12);
      const cipher = createDecipheriv('aes-128-gcm', key, nonce).setAuthTag(sealed.subarray(-16));
      const plain = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]);
      const end = plain.lastIndexOf(2);
      if (plain.subarray(end + 1).some((byte) => byte !== 0)) throw new Error('no last record');
      return JSON.parse(plain.subarray(0, end).toString());
    },
  };
}

export function claimsOf(
  { headers }: Push,
  publicKey: string,
): { readonly aud: string; readonly exp: number; readonly sub: string } {
  const [, token = '', key] = /^vapid t=([\w.-]+), ?k=([\w-]+)$/.exec(headers.authorization ?? '') ?? [];
  if (key !== publicKey) throw new Error(`signed by another key: ${headers.authorization}`);
  const [head = '', claims = '', signature = ''] = token.split('.');
  const point = Buffer.from(key, 'base64url');
  const jwk = {
    ...{ kty: 'EC', crv: 'P-256' },
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  };
  const good = verifySignature(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  const { alg } = JSON.parse(Buffer.from(head, 'base64url').toString());
  if (!good || alg !== 'ES256') throw new Error('the token is not signed by its key');
  return JSON.parse(Buffer.from(claims, 'base64url').toString());
}

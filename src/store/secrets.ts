/** How tokens are looked up and kept: HMAC-SHA256 under a pepper, and AES-256-GCM under a key ring (law 7). */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

export interface Secrets {
  /** 32 bytes by which a token is found; the token cannot be had from them. */
  lookup(token: string): Buffer;
  /** Encrypts for the owner's eyes: key id, nonce, tag and ciphertext, bound to what it belongs to. */
  seal(text: string, belongsTo: string): Buffer;
  /** Throws when the key is unknown, or when the box was made for something else. */
  open(box: Buffer, belongsTo: string): string;
  /** 32 bytes that only holders of the pepper can make, for one purpose. */
  derive(purpose: string): Buffer;
  /** By these two nodes tell whether they hold the same secrets; they give none of them away. */
  readonly checks: { readonly pepper: string; readonly keys: Readonly<Record<string, string>> };
}

export interface KeyRingEntry {
  readonly id: string;
  readonly key: Buffer;
}

const nonceBytes = 12;
const tagBytes = 16;

/** A new signing secret of a webhook as its owner sees it: `whsec_` and base64 of 32 bytes (Standard Webhooks). */
export const makeSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

export function createSecrets(pepper: string, keys: readonly KeyRingEntry[]): Secrets {
  const [current] = keys;
  if (!current) throw new Error('a key ring holds at least one key');
  const byId = new Map(keys.map((entry) => [entry.id, entry.key]));
  const fingerprint = (secret: string | Buffer) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'petrel installation check', 16)).toString('base64url');
  return {
    lookup: (token) => createHmac('sha256', pepper).update(token).digest(),
    seal(text, belongsTo) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', current.key, nonce).setAAD(Buffer.from(belongsTo));
      const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([
        Buffer.from([current.id.length]),
        Buffer.from(current.id),
        nonce,
        cipher.getAuthTag(),
        ciphertext,
      ]);
    },
    open(box, belongsTo) {
      const idEnd = 1 + (box[0] ?? 0);
      const key = byId.get(box.subarray(1, idEnd).toString());
      if (!key) throw new Error('the key that sealed this is not in the key ring');
      const tagStart = idEnd + nonceBytes;
      const decipher = createDecipheriv('aes-256-gcm', key, box.subarray(idEnd, tagStart))
        .setAAD(Buffer.from(belongsTo))
        .setAuthTag(box.subarray(tagStart, tagStart + tagBytes));
      return Buffer.concat([decipher.update(box.subarray(tagStart + tagBytes)), decipher.final()]).toString(
        'utf8',
      );
    },
    derive: (purpose) => Buffer.from(hkdfSync('sha256', pepper, '', `petrel ${purpose}`, 32)),
    checks: {
      pepper: fingerprint(pepper),
      keys: Object.fromEntries(keys.map(({ id, key }) => [id, fingerprint(key)])),
    },
  };
}

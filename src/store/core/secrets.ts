/**
 * Hashes tokens by HMAC-SHA256 with a pepper, and encrypts secrets by AES-256-GCM with a key (law 7 of the
 * architecture). During a rotation, several peppers and keys are valid. New data uses the first pepper and the first
 * key.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { type Random, systemRandom } from '../../random.js';

/**
 * The kinds of owners of encrypted secrets (boxes). After a new kind is added here, the code does not compile until
 * `rotation.ts` re-encrypts its boxes.
 */
export type BoxKind = 'bot' | 'webhook' | 'idempotency' | 'installation';
export type BoxOwner = `${BoxKind}:${string}`;

export type Secrets = ReturnType<typeof createSecrets>;

export interface KeyRingEntry {
  readonly id: string;
  readonly key: Buffer;
}

const nonceBytes = 12;
const tagBytes = 16;

/** Creates a signing secret in the form in which owners see it: `whsec_` and 32 bytes in base64 (Standard Webhooks). */
export const makeSigningSecret = (random: Random): string => `whsec_${random.bytes(32).toString('base64')}`;

export const keyIdOf = (box: Buffer): string => box.subarray(1, 1 + (box[0] ?? 0)).toString();

/** Creates the secrets. New data uses the first of `peppers` and `keys`. `root` defaults to the first pepper. */
export function createSecrets(
  peppers: readonly string[],
  keys: readonly KeyRingEntry[],
  root: string = peppers[0] ?? '',
  random: Random = systemRandom,
) {
  const [current] = keys;
  const [pepper] = peppers;
  if (!current || pepper === undefined) throw new Error('at least one key and one pepper are required');
  const byId = new Map(keys.map((entry) => [entry.id, entry.key]));
  const check = (secret: string | Buffer) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'petrel installation check', 16)).toString('base64url');
  const digest = (key: string, text: string) => createHmac('sha256', key).update(text).digest();

  /**
   * Encrypts a secret with the first key and binds it to its owner. The resulting box consists of key id, nonce, tag
   * and ciphertext.
   */
  function seal(text: string, belongsTo: BoxOwner): Buffer {
    const { id, key } = current as KeyRingEntry;
    const nonce = random.bytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(belongsTo));
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.from([id.length]), Buffer.from(id), nonce, cipher.getAuthTag(), ciphertext]);
  }

  /** Decrypts a box. Throws if the key is unknown or the box belongs to another owner. */
  function open(box: Buffer, belongsTo: BoxOwner): string {
    const key = byId.get(keyIdOf(box));
    if (!key) throw new Error(`TOKEN_KEYS lacks the key ${keyIdOf(box)}, which encrypted this data`);
    const idEnd = 1 + (box[0] ?? 0);
    const tagStart = idEnd + nonceBytes;
    const decipher = createDecipheriv('aes-256-gcm', key, box.subarray(idEnd, tagStart))
      .setAAD(Buffer.from(belongsTo))
      .setAuthTag(box.subarray(tagStart, tagStart + tagBytes));
    const text = Buffer.concat([decipher.update(box.subarray(tagStart + tagBytes)), decipher.final()]);
    return text.toString('utf8');
  }

  return {
    /** Returns 32 bytes that identify a token without revealing it. Uses the first pepper. */
    lookup: (token: string): Buffer => digest(pepper, token),
    /** Returns a lookup value for each pepper, in order. A token is valid if one of these values matches. */
    lookups: (token: string): readonly Buffer[] => peppers.map((each) => digest(each, token)),
    /** Returns 32 bytes that do not change when the peppers change. Must not be used for tokens. */
    fingerprint: (text: string): Buffer => digest(root, text),
    seal,
    open,
    /**
     * Re-encrypts a box with the first key. If the box already uses that key, returns the same box. Throws like `open`.
     */
    reseal: (box: Buffer, belongsTo: BoxOwner): Buffer =>
      keyIdOf(box) === current.id ? box : seal(open(box, belongsTo), belongsTo),
    /** Derives 32 secret bytes for one purpose. The same purpose always gives the same bytes. */
    derive: (purpose: string): Buffer => Buffer.from(hkdfSync('sha256', root, '', `petrel ${purpose}`, 32)),
    /** The installation's first pepper. Values that must not change when peppers rotate are derived from it. */
    root,
    /**
     * Check values by which nodes compare their secrets, including the order of the secrets. The values reveal no
     * secret.
     */
    checks: { peppers: peppers.map(check), keys: keys.map(({ id, key }) => ({ id, check: check(key) })) },
  };
}

/**
 * Token hashing (HMAC-SHA256 with a pepper) and encryption (AES-256-GCM with a key ring) (law 7). During rotation there
 * are several peppers and keys: the first is used for new data, all are accepted.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

/**
 * What an encrypted box belongs to. Adding a kind fails to compile until `rotation.ts` re-encrypts its boxes, and every
 * box must have a kind.
 */
export type BoxKind = 'bot' | 'webhook' | 'idempotency' | 'installation';
export type BoxOwner = `${BoxKind}:${string}`;

export interface Secrets {
  /** Computes 32 bytes with the first pepper that identify a token and do not reveal it. */
  lookup(token: string): Buffer;
  /** Computes the lookup value for each pepper, in order. A token is valid if any of them matches. */
  lookups(token: string): readonly Buffer[];
  /** Computes 32 bytes that identify a text and do not change with the peppers. Not for tokens. */
  fingerprint(text: string): Buffer;
  /** Encrypts a text with the first key: key id, nonce, tag and ciphertext, bound to the owner. */
  seal(text: string, belongsTo: BoxOwner): Buffer;
  /** Decrypts a box. Throws if the key is unknown or the box belongs to another owner. */
  open(box: Buffer, belongsTo: BoxOwner): string;
  /** Re-encrypts a box with the first key; returns the same box if it already uses that key. Throws like `open`. */
  reseal(box: Buffer, belongsTo: BoxOwner): Buffer;
  /** Derives 32 bytes from the root for one purpose. They never change. */
  derive(purpose: string): Buffer;
  /** The root of everything that must survive pepper rotation: the installation's first pepper. */
  readonly root: string;
  /** Values by which nodes check that they have the same secrets in the same order, without revealing them. */
  readonly checks: {
    readonly peppers: readonly string[];
    readonly keys: ReadonlyArray<{ readonly id: string; readonly check: string }>;
  };
}

export interface KeyRingEntry {
  readonly id: string;
  readonly key: Buffer;
}

const nonceBytes = 12;
const tagBytes = 16;

/** Creates a webhook signing secret in the form shown to owners: `whsec_` and base64 of 32 bytes (Standard Webhooks). */
export const makeSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** The id of the key that encrypted a box. */
export const keyIdOf = (box: Buffer): string => box.subarray(1, 1 + (box[0] ?? 0)).toString();

/** Creates the secrets. The first of `peppers` and `keys` is used for new data. `root` defaults to the first pepper. */
export function createSecrets(
  peppers: readonly string[],
  keys: readonly KeyRingEntry[],
  root: string = peppers[0] ?? '',
): Secrets {
  const [current] = keys;
  const [pepper] = peppers;
  if (!current || pepper === undefined) throw new Error('at least one key and one pepper are required');
  const byId = new Map(keys.map((entry) => [entry.id, entry.key]));
  const check = (secret: string | Buffer) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'petrel installation check', 16)).toString('base64url');
  const digest = (key: string, text: string) => createHmac('sha256', key).update(text).digest();

  function seal(text: string, belongsTo: BoxOwner): Buffer {
    const { id, key } = current as KeyRingEntry;
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(belongsTo));
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.from([id.length]), Buffer.from(id), nonce, cipher.getAuthTag(), ciphertext]);
  }

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
    lookup: (token) => digest(pepper, token),
    lookups: (token) => peppers.map((each) => digest(each, token)),
    fingerprint: (text) => digest(root, text),
    seal,
    open,
    reseal: (box, belongsTo) => (keyIdOf(box) === current.id ? box : seal(open(box, belongsTo), belongsTo)),
    derive: (purpose) => Buffer.from(hkdfSync('sha256', root, '', `petrel ${purpose}`, 32)),
    root,
    checks: { peppers: peppers.map(check), keys: keys.map(({ id, key }) => ({ id, check: check(key) })) },
  };
}

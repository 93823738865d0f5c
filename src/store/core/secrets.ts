/** How tokens are looked up and kept: HMAC-SHA256 under a pepper, and AES-256-GCM under a key ring (law 7). Both
 * may be several while they are rotated: the first makes what is new, all are accepted. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

/**
 * What boxes are made for. A kind that is added here does not compile until `rotation.ts` says how its boxes are sealed anew,
 * and a box of no kind cannot be made.
 */
export type BoxKind = 'bot' | 'webhook' | 'idempotency' | 'installation';
export type BoxOwner = `${BoxKind}:${string}`;

export interface Secrets {
  /** 32 bytes by which a token is found; the token cannot be had from them. Under the first pepper. */
  lookup(token: string): Buffer;
  /** The same under each pepper, in the order of the ring: a token is valid that is found under any. */
  lookups(token: string): readonly Buffer[];
  /** 32 bytes of a text that stay the same when peppers change; for what is no token. */
  fingerprint(text: string): Buffer;
  /** Encrypts for the owner's eyes: key id, nonce, tag and ciphertext, bound to what it belongs to. Under the first key. */
  seal(text: string, belongsTo: BoxOwner): Buffer;
  /** Throws when the key is unknown, or when the box was made for something else. */
  open(box: Buffer, belongsTo: BoxOwner): string;
  /** The content of a box in one under the first key; the box itself if that sealed it. Throws as `open` does. */
  reseal(box: Buffer, belongsTo: BoxOwner): Buffer;
  /** 32 bytes that only holders of the root can make, for one purpose. They never change. */
  derive(purpose: string): Buffer;
  /** From which all is derived that must outlive a pepper: the first pepper the installation had. */
  readonly root: string;
  /** By these two nodes tell whether they hold the same secrets, in the order of their rings; they give none of them away. */
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

/** A new signing secret of a webhook as its owner sees it: `whsec_` and base64 of 32 bytes (Standard Webhooks). */
export const makeSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** The id of the key that sealed a box. */
export const keyIdOf = (box: Buffer): string => box.subarray(1, 1 + (box[0] ?? 0)).toString();

/** `peppers` and `keys` with the one in front that makes what is new. Without `root` it is the first pepper. */
export function createSecrets(
  peppers: readonly string[],
  keys: readonly KeyRingEntry[],
  root: string = peppers[0] ?? '',
): Secrets {
  const [current] = keys;
  const [pepper] = peppers;
  if (!current || pepper === undefined) throw new Error('a ring holds at least one key, and one pepper');
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
    if (!key) throw new Error(`the key ${keyIdOf(box)} that sealed this is not in TOKEN_KEYS`);
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

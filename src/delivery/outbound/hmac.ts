/** Computes HMAC-SHA256 (RFC 2104). For short texts, this implementation takes a third less time than `createHmac`. */
import * as crypto from 'node:crypto';

const blockBytes = 64;
const digestBytes = 32;
/**
 * The maximum length of a text that is copied before it is hashed. A longer text is passed to `createHmac`, which does
 * not copy it.
 */
const copiedBytesMax = 4_096;

/** `crypto.hash` exists since Node 20.12. Null in older versions. */
const hash: typeof crypto.hash | null = crypto.hash ?? null;

// All computations share these buffers. Each computation is synchronous and overwrites the buffers before it reads
// them.
const innerText = Buffer.alloc(blockBytes + copiedBytesMax);
const outerText = Buffer.alloc(blockBytes + digestBytes);

/**
 * Extends the key with zeros to one block, and combines each byte of the block with `pad` by XOR. The key must not be
 * longer than one block.
 */
function padded(key: Buffer, pad: number): Buffer {
  const block = Buffer.alloc(blockBytes, pad);
  for (const [index, byte] of key.entries()) block[index] = byte ^ pad;
  return block;
}

export type Hmac = (prefix: string, body: Buffer, encoding: 'hex' | 'base64') => string;

/**
 * Returns a function that computes the HMAC-SHA256 of an ASCII prefix followed by a body. `oneShot` is null if this
 * version of Node has no one-shot hashes.
 */
export function makeHmac(key: Buffer, oneShot = hash): Hmac {
  const whole = crypto.createSecretKey(key);
  const short = key.length > blockBytes ? crypto.createHash('sha256').update(key).digest() : key;
  const [inner, outer] = [padded(short, 0x36), padded(short, 0x5c)];
  return (prefix, body, encoding) => {
    const length = blockBytes + prefix.length + body.length;
    if (oneShot === null || length > innerText.length)
      return crypto.createHmac('sha256', whole).update(prefix).update(body).digest(encoding);
    inner.copy(innerText);
    innerText.write(prefix, blockBytes, 'latin1');
    body.copy(innerText, blockBytes + prefix.length);
    outer.copy(outerText);
    outerText.write(oneShot('sha256', innerText.subarray(0, length), 'binary'), blockBytes, 'latin1');
    return oneShot('sha256', outerText, encoding);
  };
}

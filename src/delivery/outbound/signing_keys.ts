/**
 * Reads the Ed25519 keys of this installation (setting WEBHOOK_SIGNING_KEYS). With the public keys, a receiver verifies
 * deliveries without a shared secret. The signature is `v1a` of Standard Webhooks.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

/** The path that serves the installation's public keys. */
export const keySetPath = '/.well-known/jwks.json';

/** The beginning of a private key in DER (RFC 8410). The 32 secret bytes follow. */
const der_head = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Creates a private key from 32 bytes in base64url. */
export const signingKey = (text: string): KeyObject =>
  createPrivateKey({
    key: Buffer.concat([der_head, Buffer.from(text, 'base64url')]),
    format: 'der',
    type: 'pkcs8',
  });

/** Returns the public keys as a JSON Web Key Set (RFC 7517, RFC 8037). The `kid` is the thumbprint of RFC 7638. */
export function publicKeySet(texts: readonly string[]): string {
  const keys = texts.map((text) => {
    const { crv, kty, x } = createPublicKey(signingKey(text)).export({ format: 'jwk' });
    const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url');
    return { kty, crv, x, kid, alg: 'EdDSA', use: 'sig' };
  });
  return JSON.stringify({ keys });
}

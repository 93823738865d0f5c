/** Declares types for the parts of http_ece that Petrel uses. */
declare module 'http_ece' {
  import type { ECDH } from 'node:crypto';

  interface EncryptParams {
    readonly version: 'aes128gcm';
    readonly privateKey: ECDH;
    readonly dh: string;
    readonly authSecret: string;
  }

  /** Encrypts as in RFC 8188, with the keys of RFC 8291. Returns the header and one record. */
  export function encrypt(plain: Buffer, params: EncryptParams): Buffer;
}

/** Types of the parts of http_ece that we use. */
declare module 'http_ece' {
  import type { ECDH } from 'node:crypto';

  interface EncryptParams {
    readonly version: 'aes128gcm';
    /** of the sender, new for each message */
    readonly privateKey: ECDH;
    /** of the receiver, as base64url */
    readonly dh: string;
    readonly authSecret: string;
  }

  /** RFC 8188 with the keys of RFC 8291: header and one record. */
  export function encrypt(plain: Buffer, params: EncryptParams): Buffer;
}

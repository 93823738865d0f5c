/** Reads from the settings how requests to webhooks are signed. */
import type { Config } from '../config/config.js';
import type { SignerOptions } from '../delivery/outbound/sign.js';
import { signingKey } from '../delivery/outbound/signing_keys.js';

export const signerOf = ({ HEADER_SERVICE_NAME, WEBHOOK_SIGNING_KEYS: keys }: Config): SignerOptions => ({
  service: HEADER_SERVICE_NAME,
  // Signs with the first key only. The other keys are published too, so that receivers know them before they are used.
  signingKey: keys && signingKey(keys[0] as string),
});

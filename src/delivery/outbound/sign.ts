/** Builds request headers with which a receiver can verify the origin and the content of an update. */
import { type KeyObject, sign as signWith } from 'node:crypto';
import { makeHmac } from './hmac.js';

const prefix = 'whsec_';

export interface SigningKeys {
  readonly secret: string;
  readonly formerSecret?: string | undefined;
  readonly secretToken?: string | undefined;
}

export interface SignerOptions {
  /** The word that replaces `Service` in the names of headers such as `X-Service-Signature`. */
  readonly service: string;
  /**
   * The installation's Ed25519 key. If present, it also signs each delivery, and receivers verify this signature with
   * the published public key.
   */
  readonly signingKey?: KeyObject | undefined;
}

export interface Signable {
  readonly botId: string;
  /** The id of the update, or the name of a test request. */
  readonly updateId: number | string;
  readonly body: Buffer;
  /** The start of this attempt, as Unix time in seconds. */
  readonly nowS: number;
}

export type Headers = Readonly<Record<string, string>>;

const decoded = (secret: string) => Buffer.from(secret.slice(prefix.length), 'base64');

/**
 * Builds the headers of a bot's deliveries (interface §§4.4, 5; behaviour §10). `X-Service-Signature` is made with the
 * secret token, or without one with the current signing secret. `webhook-signature` contains `v1` signatures, made with
 * the current and with the previous signing secret, followed by the `v1a` signature of the installation. The timestamp
 * is the time of this attempt, so that a retry also passes the receiver's check of the timestamp.
 */
export function makeSigner(
  keys: SigningKeys,
  { service, signingKey }: SignerOptions,
): (update: Signable) => Headers {
  const { secret, formerSecret, secretToken } = keys;
  const signatureName = `X-${service}-Signature`;
  const tokenName = `X-${service}-Bot-Api-Secret-Token`;
  const bodyHmac = makeHmac(Buffer.from(secretToken ?? secret));
  const hmac = makeHmac(decoded(secret));
  const formerHmac = formerSecret === undefined ? undefined : makeHmac(decoded(formerSecret));
  return ({ botId, updateId, body, nowS }) => {
    const id = `${botId}-${updateId}`;
    const first = `${id}.${nowS}.`;
    let signatures = `v1,${hmac(first, body, 'base64')}`;
    if (formerHmac !== undefined) signatures += ` v1,${formerHmac(first, body, 'base64')}`;
    if (signingKey !== undefined) {
      const signed = Buffer.concat([Buffer.from(first), body]);
      signatures += ` v1a,${signWith(null, signed, signingKey).toString('base64')}`;
    }
    // Adds the headers with computed names one by one, because an object literal with computed names takes 2 µs.
    const headers: Record<string, string> = {
      'Content-Type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(nowS),
      'webhook-signature': signatures,
    };
    headers[signatureName] = bodyHmac('', body, 'hex');
    if (secretToken !== undefined) {
      headers[tokenName] = secretToken;
      headers['X-Telegram-Bot-Api-Secret-Token'] = secretToken;
    }
    return headers;
  };
}

/** Builds request headers with which a receiver can verify the origin and the content of an update. */
import { createHmac, createSecretKey, type KeyObject, sign as signWith } from 'node:crypto';

const prefix = 'whsec_';

export interface SigningKeys {
  readonly secret: string;
  readonly formerSecret?: string | undefined;
  readonly secretToken?: string | undefined;
}

export interface SignerOptions {
  /** Replaces `Service` in header names. */
  readonly service: string;
  /** The private key of the installation. Adds a signature that receivers verify with the public key. */
  readonly signingKey?: KeyObject | undefined;
}

export interface Signable {
  readonly botId: string;
  readonly updateId: number;
  readonly body: Buffer;
  /** The start of this attempt, as Unix time in seconds. */
  readonly nowS: number;
}

export type Headers = Readonly<Record<string, string>>;

const decoded = (secret: string) => createSecretKey(secret.slice(prefix.length), 'base64');

/**
 * Builds the headers of a bot's deliveries (interface §§4.4, 5; behaviour §10). `X-Service-Signature` is made with the secret token, or with the current signing secret if there is no secret
 * token. `webhook-signature` contains `v1` signatures, made with the signing secret and with the previous secret, and
 * then the `v1a` signature of the installation. The timestamp is the time of the attempt, so a retry passes the
 * receiver's check of its age.
 */
export function makeSigner(
  keys: SigningKeys,
  { service, signingKey }: SignerOptions,
): (update: Signable) => Headers {
  const { secret, formerSecret, secretToken } = keys;
  const signatureName = `X-${service}-Signature`;
  const fixed: Record<string, string> = { 'Content-Type': 'application/json' };
  if (secretToken !== undefined) {
    fixed[`X-${service}-Bot-Api-Secret-Token`] = secretToken;
    fixed['X-Telegram-Bot-Api-Secret-Token'] = secretToken;
  }
  const standardKeys = [secret, ...(formerSecret === undefined ? [] : [formerSecret])].map(decoded);
  const bodyKey = createSecretKey(secretToken ?? secret, 'utf8');
  return ({ botId, updateId, body, nowS }) => {
    const id = `${botId}-${updateId}`;
    const sign = (key: KeyObject) =>
      `v1,${createHmac('sha256', key).update(`${id}.${nowS}.`).update(body).digest('base64')}`;
    const signatures = standardKeys.map(sign);
    if (signingKey !== undefined) {
      const signed = Buffer.concat([Buffer.from(`${id}.${nowS}.`), body]);
      signatures.push(`v1a,${signWith(null, signed, signingKey).toString('base64')}`);
    }
    return {
      ...fixed,
      [signatureName]: createHmac('sha256', bodyKey).update(body).digest('hex'),
      'webhook-id': id,
      'webhook-timestamp': String(nowS),
      'webhook-signature': signatures.join(' '),
    };
  };
}

/**
 * The public keys of an identity provider, read from a URL or file and cached. Providers rotate their keys, so a token
 * with an unknown key id triggers another read. The cooldown bounds these reads, because anyone can make such a token.
 */
import { readFile } from 'node:fs/promises';
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';

export interface KeySetOptions {
  /** An https URL, or the path of a file. */
  readonly source: { readonly url: string } | { readonly file: string };
  /** Receives errors of reading the keys. The keys already read stay in use. */
  readonly onError: (error: unknown) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > limits.jwks_bytes_max) throw new Error('the key set of the identity provider is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function readSource(source: KeySetOptions['source']): Promise<string> {
  if ('file' in source) return readFile(source.file, 'utf8');
  const response = await fetch(source.url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(limits.jwks_read_ms_max),
  });
  if (response.status !== 200)
    throw new Error(`the request for the keys of the identity provider was answered with ${response.status}`);
  return readBounded(response);
}

type LocalKeys = ReturnType<typeof createLocalJWKSet>;

/** Finds the key that verifies a token. Errors: those of jose; `unavailable` until the keys were read once. */
export function createKeySet({
  source,
  onError,
  now = () => performance.now(),
}: KeySetOptions): JWTVerifyGetKey {
  let keys: LocalKeys | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;
  let missedAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function readNow(): Promise<void> {
    try {
      const jwks = JSON.parse(await readSource(source));
      keys = createLocalJWKSet(jwks);
      readAt = now();
    } catch (error) {
      failedAt = now();
      onError(error);
    }
  }

  function read(): Promise<void> {
    reading ??= readNow().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  const coolingDown = (since: number) => now() - since < limits.jwks_cooldown_ms;

  async function present(): Promise<LocalKeys> {
    const age = now() - readAt;
    if (keys === undefined || age > limits.jwks_age_ms_max) {
      if (!coolingDown(failedAt) || reading) await read();
      if (keys === undefined || now() - readAt > limits.jwks_age_ms_max)
        throw new ApiError('unavailable', { retry_after: Math.ceil(limits.jwks_cooldown_ms / 1_000) });
    } else if (age > limits.jwks_refresh_ms && !coolingDown(failedAt)) void read();
    return keys;
  }

  return async (header, token) => {
    const known = await present();
    try {
      return await known(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || (coolingDown(missedAt) && !reading)) throw error;
      if (!reading) missedAt = now();
      await read();
      return (await present())(header, token);
    }
  };
}

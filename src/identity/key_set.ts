/**
 * Loads and caches an identity provider's public keys, from a URL or a file. Loads them again for a token with an
 * unknown key id, because providers rotate their keys. There is a minimum time between two of these loads, because
 * anyone can send a token with an unknown key id.
 */
import { readFile } from 'node:fs/promises';
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { ApiError } from '../errors.js';
import { readBounded } from '../rules/bounded_body.js';
import { shared } from '../shared.js';
import { systemTime, type Time } from '../time.js';
import { identityLimits as limits } from './limits.js';

export interface KeySetOptions {
  readonly source: { readonly url: string } | { readonly file: string };
  /** Called when the keys cannot be loaded. The previous keys stay in use. */
  readonly onError: (error: unknown) => void;
  readonly time?: Time;
}

async function readSource(time: Time, source: KeySetOptions['source']): Promise<string> {
  if ('file' in source) return readFile(source.file, 'utf8');
  const response = await fetch(source.url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    redirect: 'error',
    signal: time.deadline(limits.jwks_read_ms_max),
  });
  if (response.status !== 200)
    throw new Error(`the request for the keys of the identity provider was answered with ${response.status}`);
  return readBounded(response.body, limits.jwks_bytes_max, 'key set of the identity provider');
}

type LocalKeys = ReturnType<typeof createLocalJWKSet>;

/**
 * Creates a function that finds the key for a token. The function throws jose's errors, and `unavailable` until the
 * keys have been loaded for the first time.
 */
export function createKeySet({ source, onError, time = systemTime }: KeySetOptions): JWTVerifyGetKey {
  const now = () => time.monotonic();
  let keys: LocalKeys | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;
  let missedAt = Number.NEGATIVE_INFINITY;

  const read = shared(async () => {
    try {
      const jwks = JSON.parse(await readSource(time, source));
      keys = createLocalJWKSet(jwks);
      readAt = now();
    } catch (error) {
      failedAt = now();
      onError(error);
    }
  });

  const coolingDown = (since: number) => now() - since < limits.jwks_cooldown_ms;

  async function present(): Promise<LocalKeys> {
    const age = now() - readAt;
    if (keys === undefined || age > limits.jwks_age_ms_max) {
      if (!coolingDown(failedAt) || read.running()) await read();
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
      if (!(error instanceof errors.JWKSNoMatchingKey) || (coolingDown(missedAt) && !read.running()))
        throw error;
      if (!read.running()) missedAt = now();
      await read();
      return (await present())(header, token);
    }
  };
}

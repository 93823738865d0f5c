/**
 * Verifies the signatures of leak reports. A partner signs the raw body with ECDSA P-256 and publishes the public keys.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request } from 'undici';
import { fail } from '../errors.js';
import { readBounded } from '../rules/bounded_body.js';
import type { LeakKeys } from '../server/endpoint.js';
import { shared } from '../shared.js';
import { systemTime, type Time } from '../time.js';
import { leakLimits as limits } from './limits.js';

export interface LeakKeysOptions {
  /**
   * The `https:` URL or the file path of a JSON document with PEM keys: `{"public_keys": [{"key_identifier", "key"}]}`.
   */
  readonly source: string;
  readonly onError: (error: unknown) => void;
  readonly time?: Time;
}

async function download(time: Time, url: string): Promise<string> {
  const { statusCode, body } = await request(url, {
    signal: time.deadline(limits.leak_keys_ms_max),
    headersTimeout: limits.leak_keys_ms_max,
    headers: { accept: 'application/json', 'user-agent': 'petrel' },
  });
  const text = await readBounded(body, limits.leak_keys_bytes_max, 'list of keys');
  if (statusCode !== 200) throw new Error(`the request for the list of keys was answered with ${statusCode}`);
  return text;
}

/** Parses the keys. Ignores other types of keys, which cannot verify a report. */
function keysIn(text: string): Map<string, KeyObject> {
  const { public_keys: listed } = JSON.parse(text) as { public_keys?: unknown };
  if (!Array.isArray(listed)) throw new Error('the list of keys has no public_keys');
  const keys = new Map<string, KeyObject>();
  for (const { key_identifier: id, key } of listed as Array<Record<string, unknown>>) {
    if (typeof id !== 'string' || typeof key !== 'string') continue;
    const parsed = createPublicKey(key);
    if (parsed.asymmetricKeyDetails?.namedCurve === 'prime256v1') keys.set(id, parsed);
  }
  return keys;
}

/**
 * Creates the verifier. It loads the keys at the first report, when the loaded keys are too old, and when a report
 * names an unknown key id.
 */
export function createLeakKeys({ source, onError, time = systemTime }: LeakKeysOptions): LeakKeys {
  let keys = new Map<string, KeyObject>();
  let readAt = Number.NEGATIVE_INFINITY;

  const read = shared(async () => {
    try {
      keys = keysIn(await (source.startsWith('https:') ? download(time, source) : readFile(source, 'utf8')));
    } catch (error) {
      // The previous keys stay in use, so the error is only reported.
      onError(error);
    }
    readAt = time.monotonic();
  });

  async function find(id: string): Promise<KeyObject | undefined> {
    const age = time.monotonic() - readAt;
    const wanted = keys.has(id) ? limits.leak_keys_age_ms_max : limits.leak_keys_interval_ms_min;
    if (age > wanted) await read();
    // Without keys, refuses the report. The report is not lost, because the reporter retries later.
    if (keys.size === 0) fail('unavailable', { retry_after: limits.leak_keys_interval_ms_min / 1_000 });
    return keys.get(id);
  }

  return {
    async verify(body, keyId, signature) {
      if (keyId === '' || signature === '') return false;
      const key = await find(keyId);
      if (key === undefined) return false;
      const signed = Buffer.from(signature, 'base64');
      // Refuses other spellings of the same signature, which the base64 decoder accepts.
      if (signed.toString('base64') !== signature) return false;
      return verify('sha256', body, { key, dsaEncoding: 'der' }, signed);
    },
  };
}

/** Signs people in with tokens of an external identity provider (behaviour §11). */
import { decodeJwt, type JWTPayload } from 'jose';
import { ruleLimits } from '../rules/limits.js';
import { validUsername } from '../rules/usernames.js';
import type { TokenProvider } from '../server/callers.js';
import type { NewUser } from '../store/accounts/users.js';
import type { Store } from '../store/store.js';
import type { Time } from '../time.js';
import { createKeySet, type KeySetOptions } from './key_set.js';
import { identityLimits as limits } from './limits.js';
import { createVerifier } from './verify.js';

export interface ProviderOptions {
  readonly source: KeySetOptions['source'];
  readonly issuer: string;
  readonly audience: string;
  readonly subjectClaim: string;
  readonly createUsers: boolean;
  readonly onError: (error: unknown) => void;
  readonly time?: Time;
}

function nameOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const points = [...value.replace(/[\p{Cc}\p{Surrogate}]/gu, ' ').trim()];
  return points.slice(0, ruleLimits.person_name_length_max).join('').trim() || undefined;
}

/** Returns the person that the claims describe. Ignores claims with values that Petrel does not accept. */
export function personOf(claims: JWTPayload, subject: string): NewUser {
  const { preferred_username: username, locale } = claims;
  const language = typeof locale === 'string' ? /^[a-z]{2}(?=$|[-_])/.exec(locale)?.[0] : undefined;
  const first = nameOf(claims.given_name) ?? nameOf(claims.name) ?? nameOf(username) ?? nameOf(subject);
  return {
    username: typeof username === 'string' && validUsername(username) ? username : undefined,
    first_name: first ?? 'User',
    last_name: nameOf(claims.family_name),
    language_code: language,
  };
}

/**
 * Creates the provider. A token of the provider is verified once. The result is then cached like that of Petrel's own
 * tokens, but never longer than the token is valid.
 */
export function createProvider(store: Store, options: ProviderOptions): TokenProvider {
  const keys = createKeySet(options);
  const verify = createVerifier({ ...options, keys });

  async function resolve(token: string, known: boolean) {
    const verified = await verify(token);
    if (verified === null) return null;
    const { subject, expiresAt, claims } = verified;
    const present = await store.identities.find(subject);
    if (present === null && (known || !options.createUsers)) return null;
    const id = present ?? (await store.identities.create(subject, personOf(claims, subject))).id;
    return { id, expiresAt };
  }

  return {
    // A token of the provider contains dots. Petrel's own tokens contain none.
    takes: (token) => token.includes('.'),
    person: (token, known = false) => store.auth.external(token, () => resolve(token, known)),
    endOf: (token) => (decodeJwt(token).exp ?? 0) * 1_000 + limits.jwt_leeway_ms,
  };
}

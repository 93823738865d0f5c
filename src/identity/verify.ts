/** Verifies a JWT: the identity provider must have signed it for this service, and it must be valid now. */

import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { ruleLimits } from '../rules/limits.js';
import { isBlank, isLongerThan, isWellFormed } from '../rules/text.js';
import { systemTime, type Time } from '../time.js';
import { identityLimits as limits } from './limits.js';

export interface Verified {
  readonly subject: string;
  /** The Unix time in ms at which the token expires, leeway included. */
  readonly expiresAt: number;
  readonly claims: JWTPayload;
}

export interface VerifyOptions {
  readonly keys: JWTVerifyGetKey;
  /** The settings JWT_ISSUER, JWT_AUDIENCE and JWT_SUBJECT_CLAIM. */
  readonly issuer: string;
  readonly audience: string;
  readonly subjectClaim: string;
  readonly time?: Time;
}

/**
 * Allows only asymmetric algorithms. With a symmetric algorithm, anyone who knows the public keys could sign a token.
 */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

function subjectOf(value: unknown): string | null {
  const subject = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof subject !== 'string' || isBlank(subject) || !isWellFormed(subject)) return null;
  return isLongerThan(subject, ruleLimits.external_subject_length_max) ? null : subject;
}

/**
 * Creates a function that verifies a token. It returns null for a token that is not valid now, and throws
 * `unavailable`.
 */
export function createVerifier(options: VerifyOptions) {
  const { keys, issuer, audience, subjectClaim, time = systemTime } = options;
  return async (token: string): Promise<Verified | null> => {
    if (token.length > limits.jwt_length_max) return null;
    try {
      const { payload } = await jwtVerify(token, keys, {
        algorithms,
        issuer,
        audience,
        clockTolerance: limits.jwt_leeway_ms / 1_000,
        requiredClaims: ['exp'],
        currentDate: new Date(time.now()),
      });
      const subject = subjectOf(payload[subjectClaim]);
      if (subject === null) return null;
      return { subject, expiresAt: (payload.exp as number) * 1_000 + limits.jwt_leeway_ms, claims: payload };
    } catch (error) {
      // Refuses the token after a TypeError too, because jose throws one if a key does not match the algorithm.
      if (error instanceof errors.JOSEError || error instanceof TypeError) return null;
      throw error;
    }
  };
}

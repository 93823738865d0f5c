/** Checks on receivers for the rest of the program. Sends nothing to them. */
import { type Guard, makeGuard } from './guard.js';
import { makeResolver } from './resolver.js';
import { readCertificate } from './trust.js';

export interface Receivers {
  readonly guard: Guard;
  vet(
    url: string,
    count?: () => Promise<void>,
  ): Promise<{ readonly target: { readonly url: string }; readonly address: string }>;
  readCertificate(given: Buffer): string;
}

/**
 * `allow`: special ranges that are allowed (WEBHOOK_ALLOW_CIDRS). `deny`: ranges that are forbidden
 * (WEBHOOK_DENY_CIDRS).
 */
export function createReceivers(allow: readonly string[], deny: readonly string[] = []): Receivers {
  const guard = makeGuard({ allow, deny, resolver: makeResolver() });
  return { guard, vet: guard.vet, readCertificate };
}

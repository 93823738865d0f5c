/** Lets the rest of the program check the addresses of a receiver. Sends nothing to the receiver. */
import { systemTime } from '../../time.js';
import { makeGuard } from './guard.js';
import { makeResolver } from './resolver.js';
import { readCertificate } from './trust.js';

/**
 * Creates the address checks. `allow` lists special ranges that are allowed (WEBHOOK_ALLOW_CIDRS). `deny` lists ranges
 * that are forbidden (WEBHOOK_DENY_CIDRS).
 */
export function createReceivers(allow: readonly string[], deny: readonly string[] = [], time = systemTime) {
  const guard = makeGuard({ allow, deny, resolver: makeResolver({ time }) });
  return { guard, vet: guard.vet, readCertificate };
}

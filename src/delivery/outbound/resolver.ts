/** Looks up the addresses of a host by DNS, within a time limit. */
import { promises } from 'node:dns';
import { systemTime, type Time } from '../../time.js';
import { deliveryLimits as limits } from '../limits.js';
import { DeliveryFault } from './faults.js';

export type Resolver = ReturnType<typeof makeResolver>;

export interface ResolverOptions {
  /** `address:port` of each name server. By default, the system's name servers. */
  readonly servers?: readonly string[];
  readonly waitMs?: number;
  readonly time?: Time;
}

/** Returns the error texts of the C library, which the Telegram Bot API server shows too. */
function reasonOf(codes: readonly string[]): string {
  if (codes.length < 2 || codes.some((code) => !/^(ENOTFOUND|ENODATA|EBADNAME|EBADRESP)$/.test(code)))
    return 'Temporary failure in name resolution';
  return codes.includes('ENODATA') ? 'No address associated with hostname' : 'Name or service not known';
}

/**
 * Creates a resolver that asks only name servers. Uses neither a hosts file nor a cache, because each connection must
 * be checked with the current addresses. Simultaneous lookups of one name share a query.
 */
export function makeResolver({
  servers,
  waitMs = limits.webhook_resolve_ms_max,
  time = systemTime,
}: ResolverOptions = {}) {
  const dns = new promises.Resolver({ timeout: Math.ceil(waitMs / 3), tries: 2 });
  if (servers !== undefined) dns.setServers(servers);
  const underWay = new Map<string, Promise<readonly string[]>>();

  async function lookUp(name: string): Promise<readonly string[]> {
    const v4: string[] = [];
    const v6: string[] = [];
    const codes: string[] = [];
    const ask = (answer: Promise<string[]>, into: string[]) =>
      answer.then(
        (addresses) => void into.push(...addresses),
        (error: NodeJS.ErrnoException) => void codes.push(error.code ?? ''),
      );
    await time.within(waitMs, Promise.all([ask(dns.resolve4(name), v4), ask(dns.resolve6(name), v6)]));
    const found = [...v4, ...v6];
    if (found.length > 0) return found;
    const detail = reasonOf(codes);
    throw new DeliveryFault('unresolved', `Failed to resolve host: ${detail}`, { detail });
  }

  return {
    /**
     * Returns all IPv4 addresses of a name, followed by all IPv6 addresses. The result is never empty. Throws a
     * DeliveryFault `unresolved`.
     */
    resolve(name: string): Promise<readonly string[]> {
      const shared = underWay.get(name);
      if (shared !== undefined) return shared;
      const asked = lookUp(name).finally(() => underWay.delete(name));
      underWay.set(name, asked);
      return asked;
    },
  };
}

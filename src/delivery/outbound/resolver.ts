/** Resolves the addresses of a host by DNS, in bounded time. */
import { promises } from 'node:dns';
import { limits } from '../../limits.js';
import { DeliveryFault } from './faults.js';

export interface Resolver {
  /** All IPv4 addresses of a name, then all IPv6 ones; at least one. Throws a DeliveryFault `unresolved`. */
  resolve(name: string): Promise<readonly string[]>;
}

export interface ResolverOptions {
  /** `address:port` of the name servers; by default those of the system */
  readonly servers?: readonly string[];
  readonly waitMs?: number;
}

/** The texts of the C library, which the Telegram Bot API server shows too. */
function reasonOf(codes: readonly string[]): string {
  if (codes.length < 2 || codes.some((code) => !/^(ENOTFOUND|ENODATA|EBADNAME|EBADRESP)$/.test(code)))
    return 'Temporary failure in name resolution';
  return codes.includes('ENODATA') ? 'No address associated with hostname' : 'Name or service not known';
}

/**
 * A resolver that queries name servers only. It reads no hosts file and no cache, so each connection is vetted by the
 * name's present addresses. Simultaneous lookups of one name are shared.
 */
export function makeResolver({
  servers,
  waitMs = limits.webhook_resolve_ms_max,
}: ResolverOptions = {}): Resolver {
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
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, waitMs);
    });
    await Promise.race([Promise.all([ask(dns.resolve4(name), v4), ask(dns.resolve6(name), v6)]), late]);
    clearTimeout(timer);
    const found = [...v4, ...v6];
    if (found.length > 0) return found;
    const detail = reasonOf(codes);
    throw new DeliveryFault('unresolved', `Failed to resolve host: ${detail}`, { detail });
  }

  return {
    resolve(name) {
      const shared = underWay.get(name);
      if (shared !== undefined) return shared;
      const asked = lookUp(name).finally(() => underWay.delete(name));
      underWay.set(name, asked);
      return asked;
    },
  };
}

/** Checks every address of a webhook's host when the webhook is set, and again for each new connection. */
import { isIP } from 'node:net';
import { ApiError, fail } from '../../errors.js';
import { isRefusedPort } from '../../rules/ports.js';
import { addressTest } from './addresses.js';
import { DeliveryFault } from './faults.js';
import type { Resolver } from './resolver.js';
import { namesUser, readTarget, type Target } from './target.js';

export type Guard = ReturnType<typeof makeGuard>;

export interface GuardOptions {
  readonly allow: readonly string[];
  /** The forbidden ranges (CIDR). They take precedence over `allow`. */
  readonly deny?: readonly string[];
  readonly resolver: Resolver;
}

/** Returns whether a host name always means this machine, whatever a name server answers (RFC 6761 §6.3). */
const isLocalhost = (host: string) => /(^|\.)localhost$/.test(host);

export function makeGuard({ allow, deny = [], resolver }: GuardOptions) {
  const mayDial = addressTest(allow, deny);

  async function addressesOf(
    { host, port }: Pick<Target, 'host' | 'port'>,
    count?: () => Promise<void>,
  ): Promise<readonly string[]> {
    if (isRefusedPort(port))
      throw new DeliveryFault('port', `Port ${port} is not allowed`, { detail: `${port}` });
    const literal = isIP(host) !== 0 ? host : isLocalhost(host) ? '127.0.0.1' : undefined;
    if (literal === undefined) await count?.();
    const addresses = literal === undefined ? await resolver.resolve(host) : [literal];
    // Rejects the host if any of its addresses is forbidden. Attackers mix forbidden and allowed addresses to reach
    // internal hosts.
    const refused = addresses.find((address) => !mayDial(address));
    if (refused !== undefined)
      throw new DeliveryFault('reserved', `IP address ${refused} is reserved`, { detail: refused });
    return addresses;
  }

  return {
    /**
     * Looks up and checks the addresses of a host. Returns them in the resolver's order. Throws a DeliveryFault:
     * `reserved` for a forbidden address, `port` for a forbidden port, `unresolved` for a host without addresses.
     */
    addressesOf: (target: Pick<Target, 'host' | 'port'>): Promise<readonly string[]> => addressesOf(target),
    /**
     * Parses and checks the URL of a new webhook. Calls `count` before any DNS query. Errors: `webhook_url_invalid`,
     * `webhook_url_not_https`, `webhook_port_refused`, `webhook_address_reserved`, `webhook_host_unresolved` (behaviour
     * §10), and the errors of `count`.
     */
    async vet(
      url: string,
      count?: () => Promise<void>,
    ): Promise<{ readonly target: Target; readonly address: string }> {
      // Refuses a user name or password in the URL of a new webhook. Existing webhooks with such URLs still work.
      if (namesUser(url)) return fail('webhook_url_invalid');
      const target = readTarget(url);
      try {
        const [address = ''] = await addressesOf(target, count);
        return { target, address };
      } catch (error) {
        throw asRefusal(error);
      }
    },
  };
}

function asRefusal(error: unknown): unknown {
  if (!(error instanceof DeliveryFault)) return error;
  const { reason, detail = '' } = error;
  if (reason === 'port') return new ApiError('webhook_port_refused', { what: detail });
  if (reason === 'reserved') return new ApiError('webhook_address_reserved', { what: detail });
  if (reason === 'unresolved') return new ApiError('webhook_host_unresolved', { reason: detail });
  return error;
}

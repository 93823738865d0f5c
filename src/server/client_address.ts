/** Determines the address of a client behind trusted proxies. This address is used for limits per client address. */
import ipaddr from 'ipaddr.js';
import type { ApiRequest } from './request.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Parses an address. Returns null for other text. An IPv4-mapped IPv6 address becomes IPv4. */
function parse(text: string): Address | null {
  // Removes a port that a proxy may have added: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
  const bare = text.trim().replace(/^\[([^\]]*)\](?::\d+)?$/, '$1');
  const alone = /^\d+(?:\.\d+){3}:\d+$/.test(bare) ? bare.slice(0, bare.indexOf(':')) : bare;
  return ipaddr.IPv4.isValidFourPartDecimal(alone) || ipaddr.IPv6.isValid(alone)
    ? ipaddr.process(alone)
    : null;
}

/** Shortens an IPv6 address to its /64 network. One client usually controls all addresses of such a network. */
function counted(address: Address): string {
  if (address.kind() === 'ipv4') return address.toString();
  const parts = (address as ipaddr.IPv6).parts.slice(0, 4);
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`;
}

function rangesOf(trusted: readonly string[]): (address: Address) => boolean {
  const ranges = trusted.map((range) => ipaddr.parseCIDR(range));
  return (address) =>
    ranges.some(
      ([network, bits]) =>
        network.kind() === address.kind() && address.match(network as ipaddr.IPv4 & ipaddr.IPv6, bits),
    );
}

/** Creates the check for trusted proxies. Forwarding headers from any other address are ignored. */
export function createTrust(
  trusted: readonly string[],
): (request: Pick<ApiRequest, 'remoteAddress'>) => boolean {
  if (trusted.length === 0) return () => false;
  const isTrusted = rangesOf(trusted);
  return ({ remoteAddress }) => {
    const peer = parse(remoteAddress);
    return peer !== null && isTrusted(peer);
  };
}

type Peer = Pick<ApiRequest, 'remoteAddress' | 'forwardedFor'>;

/**
 * Creates a function that returns a client's address, or null if it is unknown. It reads `X-Forwarded-For` from the
 * right, skips trusted proxies, and returns the first other address. Addresses further left may be forged. Without
 * trusted proxies, it returns the address of the connection.
 */
function createClient(trusted: readonly string[]): (request: Peer) => Address | null {
  const isTrusted = rangesOf(trusted);
  return ({ remoteAddress, forwardedFor }) => {
    let client = parse(remoteAddress);
    if (client === null) return null;
    const hops = forwardedFor === '' ? [] : forwardedFor.split(',');
    while (hops.length > 0 && isTrusted(client)) {
      const next = parse(hops.pop() as string);
      if (next === null) break;
      client = next;
    }
    return client;
  };
}

export function createClientAddress(trusted: readonly string[]): (request: Peer) => string {
  const clientOf = createClient(trusted);
  return (request) => {
    const client = clientOf(request);
    return client === null ? '' : counted(client);
  };
}

export type AdminClients = ReturnType<typeof createAdminClients>;

/** Checks administrators' addresses against the setting ADMIN_ALLOW_CIDRS. If it is empty, any address is allowed. */
export function createAdminClients(trusted: readonly string[], allowed: readonly string[]) {
  const clientOf = createClient(trusted);
  const isAllowed = rangesOf(allowed);
  return {
    address: (request: Peer) => clientOf(request)?.toString() ?? '',
    allows(request: Peer): boolean {
      if (allowed.length === 0) return true;
      const client = clientOf(request);
      return client !== null && isAllowed(client);
    },
  };
}

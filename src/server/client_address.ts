/** The address of the client behind trusted proxies, for what is counted by address. */
import ipaddr from 'ipaddr.js';
import type { ApiRequest } from './request.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** An IPv4 client of an IPv6 socket is an IPv4 client. Null for a text that is no address. */
function parse(text: string): Address | null {
  // Proxies may add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
  const bare = text.trim().replace(/^\[([^\]]*)\](?::\d+)?$/, '$1');
  const alone = /^\d+(?:\.\d+){3}:\d+$/.test(bare) ? bare.slice(0, bare.indexOf(':')) : bare;
  return ipaddr.IPv4.isValidFourPartDecimal(alone) || ipaddr.IPv6.isValid(alone)
    ? ipaddr.process(alone)
    : null;
}

/** Who has an IPv6 address has at least the 64 bits behind it. */
function counted(address: Address): string {
  if (address.kind() === 'ipv4') return address.toString();
  const parts = (address as ipaddr.IPv6).parts.slice(0, 4);
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`;
}

/** Whether an address is in one of these ranges. */
function rangesOf(trusted: readonly string[]): (address: Address) => boolean {
  const ranges = trusted.map((range) => ipaddr.parseCIDR(range));
  return (address) =>
    ranges.some(
      ([network, bits]) =>
        network.kind() === address.kind() && address.match(network as ipaddr.IPv4 & ipaddr.IPv6, bits),
    );
}

/** Whether the peer of a request is one of `trusted`, so that its headers tell of somebody else. */
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
 * Reads `X-Forwarded-For` from the right as far as each address is one of `trusted`; what stands before the first other one is
 * anybody's invention. Without trusted proxies the peer is the client. Null when it is not known.
 */
function createClient(trusted: readonly string[]): (request: Peer) => Address | null {
  const isTrusted = rangesOf(trusted);
  return ({ remoteAddress, forwardedFor }) => {
    let client = parse(remoteAddress);
    if (client === null) return null;
    const told = forwardedFor === '' ? [] : forwardedFor.split(',');
    while (told.length > 0 && isTrusted(client)) {
      const next = parse(told.pop() as string);
      if (next === null) break;
      client = next;
    }
    return client;
  };
}

/** The address under which a client is counted: IPv6 by /64. '' when it is not known. */
export function createClientAddress(trusted: readonly string[]): (request: Peer) => string {
  const clientOf = createClient(trusted);
  return (request) => {
    const client = clientOf(request);
    return client === null ? '' : counted(client);
  };
}

export interface AdminClients {
  /** The whole address of a client; '' when it is not known. */
  address(request: Peer): string;
  /** Whether an administrator may call from there. */
  allows(request: Peer): boolean;
}

/** Who may call as an administrator: clients in `allowed`, or any client if that is empty (setting ADMIN_ALLOW_CIDRS). */
export function createAdminClients(trusted: readonly string[], allowed: readonly string[]): AdminClients {
  const clientOf = createClient(trusted);
  const isAllowed = rangesOf(allowed);
  return {
    address: (request) => clientOf(request)?.toString() ?? '',
    allows(request) {
      if (allowed.length === 0) return true;
      const client = clientOf(request);
      return client !== null && isAllowed(client);
    },
  };
}

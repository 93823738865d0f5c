/** Finds the client address behind trusted proxies, for limits per address. */
import ipaddr from 'ipaddr.js';
import type { ApiRequest } from './request.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Null for text that is not an address. An IPv4-mapped IPv6 address becomes IPv4. */
function parse(text: string): Address | null {
  // Proxies may add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
  const bare = text.trim().replace(/^\[([^\]]*)\](?::\d+)?$/, '$1');
  const alone = /^\d+(?:\.\d+){3}:\d+$/.test(bare) ? bare.slice(0, bare.indexOf(':')) : bare;
  return ipaddr.IPv4.isValidFourPartDecimal(alone) || ipaddr.IPv6.isValid(alone)
    ? ipaddr.process(alone)
    : null;
}

/** IPv6 is counted by /64, because one client controls at least that many addresses. */
function counted(address: Address): string {
  if (address.kind() === 'ipv4') return address.toString();
  const parts = (address as ipaddr.IPv6).parts.slice(0, 4);
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`;
}

/** Returns a test for addresses in these ranges. */
function rangesOf(trusted: readonly string[]): (address: Address) => boolean {
  const ranges = trusted.map((range) => ipaddr.parseCIDR(range));
  return (address) =>
    ranges.some(
      ([network, bits]) =>
        network.kind() === address.kind() && address.match(network as ipaddr.IPv4 & ipaddr.IPv6, bits),
    );
}

/** Whether the peer is a trusted proxy, whose forwarding headers are believed. */
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
 * Reads `X-Forwarded-For` from the right and skips trusted proxies. The first other address is the client; anyone could
 * have invented what stands to its left. Without trusted proxies the peer is the client. Null when unknown.
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

/** The address that limits are counted by, IPv6 as /64. '' when unknown. */
export function createClientAddress(trusted: readonly string[]): (request: Peer) => string {
  const clientOf = createClient(trusted);
  return (request) => {
    const client = clientOf(request);
    return client === null ? '' : counted(client);
  };
}

export interface AdminClients {
  /** The full address of a client; '' when unknown. */
  address(request: Peer): string;
  /** Whether administrators may call from the client's address. */
  allows(request: Peer): boolean;
}

/** Checks administrators' addresses against `allowed` (setting ADMIN_ALLOW_CIDRS). An empty list allows all. */
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

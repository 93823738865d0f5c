/** Decides whether an IP address is in a special range, which no receiver on the public internet uses. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type IPv4 = ipaddr.IPv4;
type IPv6 = ipaddr.IPv6;
type Address = IPv4 | IPv6;
type Range = readonly [network: Address, bits: number];

/**
 * The ranges of the IANA special-purpose registries, and three kinds of ranges that the registries omit: multicast,
 * retired blocks, and the public host address of one cloud provider.
 * https://www.iana.org/assignments/iana-ipv4-special-registry
 */
const special4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; a metadata service at 100.100.100.200
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's host, reachable from every Azure machine
  '169.254.0.0/16', // link-local; the metadata service of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; a metadata service at 192.0.0.192
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and the broadcast address
];

/** The block from which IANA allocates unicast addresses. All other IPv6 addresses are special. */
const global6 = '2000::/3';

const special6 = [
  '2001::/23', // protocol assignments: Teredo, benchmarking, AMT, AS112, both ORCHIDs, DRIP
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3ffe::/16', // 6bone, returned
  '3fff::/20', // documentation
];

const range = (cidr: string): Range => ipaddr.parseCIDR(cidr);
const specials4 = special4.map(range);
const specials6 = special6.map(range);
const globals6 = [range(global6)];

function within(address: Address, ranges: readonly Range[]): boolean {
  return ranges.some(
    ([network, bits]) => network.kind() === address.kind() && address.match(network as IPv4 & IPv6, bits),
  );
}

/** The IPv6 prefixes of addresses that contain an IPv4 address, each with the offset of the IPv4 address in bytes. */
const carriers: readonly (readonly [Range, at: number])[] = [
  [range('::ffff:0:0/96'), 12], // IPv4-mapped
  [range('::ffff:0:0:0/96'), 12], // IPv4-translated
  [range('64:ff9b::/96'), 12], // NAT64
  [range('2002::/16'), 2], // 6to4
  [range('2001::/32'), 4], // Teredo: the server
];
const teredo = [range('2001::/32')];

/** Returns the IPv4 addresses that might receive a packet sent to this IPv6 address. */
function carried(address: IPv6): IPv4[] {
  const bytes = address.toByteArray();
  const at = (first: number) => new ipaddr.IPv4(bytes.slice(first, first + 4));
  const found = carriers.flatMap(([form, first]) => (within(address, [form]) ? [at(first)] : []));
  // Inverts every bit, because Teredo stores the client's address inverted.
  if (within(address, teredo)) found.push(new ipaddr.IPv4(bytes.slice(12).map((byte) => byte ^ 0xff)));
  // ISATAP allows any prefix. Its interface identifier starts with 0000:5efe or 0200:5efe.
  const [high = 0, low = 0, a, b] = bytes.slice(8, 12);
  if ((high & 0xfd) === 0 && low === 0 && a === 0x5e && b === 0xfe) found.push(at(12));
  return found;
}

const isSpecial = (address: Address): boolean =>
  address.kind() === 'ipv4'
    ? within(address, specials4)
    : !within(address, globals6) || within(address, specials6);

/**
 * Returns a function that tells whether the process may connect to an address. `allow` permits special ranges (CIDR).
 * `deny` forbids ranges and takes precedence. An IPv6 address that contains an IPv4 address is allowed only if both
 * addresses are allowed. Malformed addresses and addresses with a zone are never allowed.
 */
export function addressTest(
  allow: readonly string[],
  deny: readonly string[] = [],
): (address: string) => boolean {
  const opened = allow.map(range);
  const closed = deny.map(range);
  const passes = (address: Address) =>
    !within(address, closed) && (!isSpecial(address) || within(address, opened));
  return (text) => {
    if (isIP(text) === 0 || text.includes('%')) return false;
    const address = ipaddr.parse(text);
    return passes(address) && (address.kind() === 'ipv4' || carried(address as IPv6).every(passes));
  };
}

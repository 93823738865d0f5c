import { BlockList } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressTest } from '../../src/delivery/outbound/addresses.js';
import { forbidden, notAddresses, permitted } from './addresses.cases.js';

const mayDial = addressTest([]);

test('the table of forbidden addresses has at least 60 entries, all different', () => {
  expect(new Set(forbidden.map(([address]) => address)).size).toBe(forbidden.length);
  expect(forbidden.length).toBeGreaterThanOrEqual(60);
});

test.each(forbidden)('%s must not be dialled: %s', (address) => expect(mayDial(address)).toBe(false));
test.each(permitted)('%s may be dialled', (address) => expect(mayDial(address)).toBe(true));
test.each(notAddresses)('%j is not an address', (text) => {
  expect(addressTest(['0.0.0.0/0', '::/0'])(text)).toBe(false);
});

describe('allowed ranges', () => {
  test.each<[allow: string[], address: string, may: boolean]>([
    [['127.0.0.0/8'], '127.0.0.1', true],
    [['127.0.0.0/8'], '10.0.0.1', false],
    [['127.0.0.0/8'], '::1', false],
    [['127.0.0.0/8'], '::ffff:127.0.0.1', false],
    [['10.1.0.0/16'], '10.1.255.255', true],
    [['10.1.0.0/16'], '10.2.0.0', false],
    [['10.1.2.3/32'], '10.1.2.3', true],
    [['10.1.2.3/32'], '10.1.2.4', false],
    [['::1/128'], '::1', true],
    [['fd00::/8'], 'fd12::1', true],
    [['fd00::/8'], 'fc12::1', false],
    [['fd00::/8', '10.0.0.0/8'], '10.0.0.1', true],
    [['64:ff9b::/96'], '64:ff9b::8.8.8.8', true],
    [['64:ff9b::/96'], '64:ff9b::127.0.0.1', false],
    [['64:ff9b::/96', '127.0.0.0/8'], '64:ff9b::127.0.0.1', true],
    [['2002::/16'], '2002:a00:1::1', false],
    [['2002::/16'], '2002:808:808::1', true],
    [['2001::/32'], '2001:0:808:808:0:0:f5ff:fffe', false],
    [['2001::/32'], '2001:0:808:808:0:0:f7f7:f7f7', true],
    [['::ffff:0:0/96'], '::ffff:169.254.169.254', false],
    [['0.0.0.0/0', '::/0'], '64:ff9b::169.254.169.254', true],
  ])('with %j allowed, %s may be dialled: %s', (allow, address, may) =>
    expect(addressTest(allow)(address)).toBe(may),
  );
});

test('the guard and a second implementation agree on every IPv4 address', () => {
  const list = new BlockList();
  for (const cidr of [
    '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
    '192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24',
    '203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32',
  ].flatMap((line) => line.split(' '))) {
    const [network = '', bits] = cidr.split('/');
    list.addSubnet(network, Number(bits), 'ipv4');
  }
  const octet = fc.oneof(
    fc.nat(255),
    fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 254, 255),
  );
  fc.assert(
    fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
      const address = octets.join('.');
      expect(mayDial(address)).toBe(!list.check(address, 'ipv4'));
      for (const form of ['::ffff:', '::', '64:ff9b::']) expect(mayDial(`${form}${address}`)).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

test('no IPv6 address outside global unicast is allowed, in any spelling', () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const first = Number.parseInt(address.split(':')[0] || '0', 16);
      if (first < 0x2000 || first > 0x3fff) expect(mayDial(address)).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

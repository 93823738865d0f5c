/**
 * Tests the host check of every TLS connection. Some releases of Node never match the IPv6 addresses of a certificate.
 */
import { once } from 'node:events';
import { get } from 'node:https';
import { networkInterfaces } from 'node:os';
import tls from 'node:tls';
import { expect, test } from 'vitest';
import '../src/tls_identity.js';
import { makeCertificate } from './support/certificates.js';
import { startReceiver } from './support/receivers.js';

const hasLoopback = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);

test.runIf(hasLoopback).each([
  ['::1', 'answered 200'],
  ['::2', 'ERR_TLS_CERT_ALTNAME_INVALID'],
])('with a certificate for %s, a request to https://[::1]/ is %s', async (address, expected) => {
  const certificate = makeCertificate({ names: ['localhost'], addresses: [address, '127.0.0.1'] });
  const receiver = await startReceiver(certificate);
  try {
    const asked = get(`https://[::1]:${receiver.port}/`, { ca: certificate.cert, agent: false });
    const outcome = await once(asked, 'response').then(
      ([response]) => `answered ${response.resume().statusCode}`,
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect(outcome).toBe(expected);
  } finally {
    await receiver.close();
  }
});

test('the TLS host check still applies to names and IPv4 addresses', () => {
  const certificate = { subject: {}, subjectaltname: 'DNS:a.example, IP Address:192.0.2.1' } as never;
  const codeOf = (host: string) =>
    (tls.checkServerIdentity(host, certificate) as NodeJS.ErrnoException)?.code;
  expect(['a.example', '192.0.2.1', 'b.example', '192.0.2.2'].map(codeOf)).toEqual([
    undefined,
    undefined,
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ]);
});

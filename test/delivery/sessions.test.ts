import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createTcp } from 'node:net';
import { expect, test } from 'vitest';
import { deliveryLimits as limits } from '../../src/delivery/limits.js';
import { makeGuard } from '../../src/delivery/outbound/guard.js';
import { receiverOf, Sender } from '../../src/delivery/outbound/send.js';
import { TlsSessions } from '../../src/delivery/outbound/sessions.js';
import { makeCertificate } from '../support/certificates.js';
import { VirtualTime } from '../support/virtual_time.js';
import { body, certificate, headers, type OnFinished, said, senderFor } from './fixture.js';

const host = 'receiver.test';
const shown = makeCertificate({ names: [host], addresses: ['127.0.0.1'] });
const untrusted = makeCertificate({ names: [host], addresses: ['127.0.0.1'], freshKey: true });

/**
 * Starts a receiver that closes each connection after one answer. The list `resumed` says for each handshake whether a
 * TLS session was resumed.
 */
async function closing(
  onTestFinished: OnFinished,
  version: 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.3',
  address = '127.0.0.1',
) {
  const resumed: boolean[] = [];
  const server = createHttps({ ...shown, maxVersion: version }, (request, response) => {
    request.resume().on('end', () => response.setHeader('Connection', 'close').end());
  });
  server.on('secureConnection', (socket) => resumed.push(socket.isSessionReused()));
  server.on('tlsClientError', () => {});
  server.listen({ port: 0, host: address });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  onTestFinished(async () => void server.close());
  return { server, resumed, port, target: receiverOf(`https://127.0.0.1:${port}/`, shown.cert) };
}

test.for(['TLSv1.2', 'TLSv1.3'] as const)(
  'a new connection resumes the session of an earlier one with %s',
  async (version, { onTestFinished }) => {
    const { resumed, target } = await closing(onTestFinished, version);
    const sender = senderFor(onTestFinished);
    for (let n = 0; n < 3; n++) expect(said(await sender.send(target, headers, body))).toBe('answered 200');
    expect(resumed).toEqual([false, true, true]);
  },
);

test('a certificate is verified again when its TLS session has reached the age limit', async ({
  onTestFinished,
}) => {
  const { resumed, target } = await closing(onTestFinished);
  const sender = senderFor(onTestFinished, { sessionMs: 1_000 });
  const verified = async () => {
    expect(said(await sender.send(target, headers, body))).toBe('answered 200');
    return resumed.filter((each) => !each).length;
  };
  await expect.poll(verified).toBe(3);
  expect(resumed).toContain(true);
});

test('a webhook with another uploaded certificate does not resume the TLS session', async ({
  onTestFinished,
}) => {
  const { resumed, target, port } = await closing(onTestFinished);
  const sender = senderFor(onTestFinished);
  expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  for (const anchor of [certificate.cert, undefined])
    expect(said(await sender.send(receiverOf(target.target.url, anchor), headers, body))).toMatch(
      /^tls: SSL error: /,
    );
  const otherHost = receiverOf(`https://localhost:${port}/`, shown.cert);
  expect(said(await sender.send(otherHost, headers, body))).toMatch(/^tls: SSL error: /);
  expect(resumed).not.toContain(true);
});

test('a TLS session is resumed only on connections to the IP address for which it was created', async ({
  onTestFinished,
}) => {
  const { resumed, port } = await closing(onTestFinished, 'TLSv1.3', '0.0.0.0');
  const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.1'];
  const resolver = { resolve: async () => [addresses.shift() as string] };
  const sender = new Sender({ guard: makeGuard({ allow: ['127.0.0.0/8'], resolver }) });
  onTestFinished(() => sender.close());
  const to = receiverOf(`https://${host}:${port}/`, shown.cert);
  for (let n = 0; n < 3; n++) expect(said(await sender.send(to, headers, body))).toBe('answered 200');
  expect(resumed).toEqual([false, false, true]);
});

test('if a server has lost the ticket keys of a TLS session, the certificate of the server is verified again', async ({
  onTestFinished,
}) => {
  const { resumed, server, target } = await closing(onTestFinished);
  const sender = senderFor(onTestFinished);
  expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  server.setTicketKeys(randomBytes(48));
  expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  server.setTicketKeys(randomBytes(48));
  server.setSecureContext(untrusted);
  expect(said(await sender.send(target, headers, body))).toBe('tls: SSL error: self-signed certificate');
  expect(resumed).not.toContain(true);
});

/** Returns whether a ClientHello offers a session of TLS 1.3 (RFC 8446 §4.1.2, extension 41). */
function offersSession(hello: Buffer): boolean {
  let at = 43;
  at += 1 + hello.readUInt8(at);
  at += 2 + hello.readUInt16BE(at);
  at += 1 + hello.readUInt8(at);
  for (at += 2; at + 4 <= hello.length; at += 4 + hello.readUInt16BE(at + 2))
    if (hello.readUInt16BE(at) === 41) return true;
  return false;
}

test('if a server refuses to resume a TLS session, the server gets a full handshake', async ({
  onTestFinished,
}) => {
  const { server, resumed } = await closing(onTestFinished);
  let refused = 0;
  const front = createTcp((socket) => {
    socket.on('error', () => {});
    socket.once('data', (hello) => {
      if (offersSession(hello)) {
        refused += 1;
        socket.destroy();
        return;
      }
      socket.pause();
      socket.unshift(hello);
      server.emit('connection', socket);
    });
  });
  front.listen({ port: 0, host: '127.0.0.1' });
  await once(front, 'listening');
  onTestFinished(async () => void front.close());
  const to = receiverOf(`https://127.0.0.1:${(front.address() as AddressInfo).port}/`, shown.cert);
  const sender = senderFor(onTestFinished);
  for (let n = 0; n < 3; n++) expect(said(await sender.send(to, headers, body))).toBe('answered 200');
  expect([resumed, refused]).toEqual([[false, false, false], 1]);
});

test('a TLS session is not resumed after its certificate has expired', async () => {
  const time = new VirtualTime();
  const sessions = new TlsSessions(time, 60_000);
  const at = (ms: number) => new Date(time.machine() + ms).toUTCString();
  const left = (validTo: string) => sessions.endOf(validTo) - time.monotonic();
  expect(left(at(3_600_000))).toBe(60_000);
  expect(left(at(30_000))).toBeGreaterThan(28_999);
  expect(left(at(30_000))).toBeLessThanOrEqual(30_000);
  expect(left('no date')).toBe(0);
  sessions.keep('a', Buffer.from('s'), sessions.endOf(at(-1_000)));
  expect(sessions.find('a')).toBeUndefined();
  sessions.keep('a', Buffer.from('s'), sessions.endOf(at(30_000)));
  await time.advance(28_000);
  expect(sessions.find('a')?.toString()).toBe('s');
  await time.advance(2_001);
  expect(sessions.find('a')).toBeUndefined();
  expect(sessions.count).toBe(0);
});

test('the number and the size of TLS sessions are limited', () => {
  const time = new VirtualTime();
  const sessions = new TlsSessions(time, 60_000);
  const keep = (key: string, bytes: number) =>
    sessions.keep(key, Buffer.alloc(bytes), time.monotonic() + 1_000);
  keep('large', limits.webhook_session_bytes_max + 1);
  expect(sessions.count).toBe(0);
  for (let n = 0; n <= limits.webhook_sessions_max; n++) keep(String(n), 1);
  expect(sessions.count).toBe(limits.webhook_sessions_max);
  expect([sessions.find('0'), sessions.find('1')?.length]).toEqual([undefined, 1]);
});

import { createReadStream } from 'node:fs';
import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createServer as createTls } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { receiverOf } from '../../src/delivery/outbound/send.js';
import { errorMessageOf, isDelivered } from '../../src/delivery/outcome.js';
import { limits } from '../../src/limits.js';
import { startListener } from '../support/receivers.js';
import { body, certificate, headers, receive, said, senderFor } from './fixture.js';

test('the receiver gets the body, headers and path of the request unchanged', async ({ onTestFinished }) => {
  const seen: unknown[] = [];
  const { target, receiver } = await receive(onTestFinished, (request, response, received) => {
    seen.push(request.method, request.url, request.headers, received.toString());
    response.setHeader('Content-Type', 'application/json').end('{"method":"sendMessage"}');
  });
  const outcome = await senderFor(onTestFinished).send(target, { ...headers, 'X-Test': 'a' }, body);
  expect(outcome).toMatchObject({
    kind: 'answered',
    status: 200,
    truncated: false,
    address: '127.0.0.1',
    retryAfterMs: undefined,
  });
  expect(isDelivered(outcome) && outcome.body.toString()).toBe('{"method":"sendMessage"}');
  const sent = {
    host: `127.0.0.1:${receiver.port}`,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'content-length': String(body.length),
    'x-test': 'a',
  };
  expect(seen).toEqual(['POST', '/hook?a=1', sent, body.toString()]);
});

test('the sender uses the host name of a webhook URL for SNI and Host', async ({ onTestFinished }) => {
  let shown: unknown;
  const { receiver } = await receive(onTestFinished, ({ headers: { host, authorization } }, response) => {
    shown = { host, authorization };
    response.end();
  });
  const to = receiverOf(`https://a:b@LocalHost.:${receiver.port}/`, certificate.cert);
  expect(said(await senderFor(onTestFinished).send(to, headers, body))).toBe('answered 200');
  expect(shown).toEqual({ host: `localhost:${receiver.port}`, authorization: 'Basic YTpi' });
});

test.runIf(Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1')))(
  'a receiver at an IPv6 address gets the request',
  async ({ onTestFinished }) => {
    const { receiver } = await receive(onTestFinished);
    const to = receiverOf(`https://[::1]:${receiver.port}/`, certificate.cert);
    const outcome = await senderFor(onTestFinished).send(to, headers, body);
    expect(outcome).toMatchObject({ kind: 'answered', status: 200, address: '::1' });
  },
);

test('a receiver gets a request body of 10 MB', async ({ onTestFinished }) => {
  let bytes = 0;
  const { target } = await receive(onTestFinished, (_, response, received) => {
    bytes = received.length;
    response.end();
  });
  const large = Buffer.alloc(limits.webhook_body_bytes_max, 'a');
  expect(said(await senderFor(onTestFinished).send(target, headers, large))).toBe('answered 200');
  expect(bytes).toBe(large.length);
});

describe('the sender reports the status of any answer', () => {
  test.for<
    [status: number, headers: Record<string, string>, message: string, retryAfterMs: number | undefined]
  >([
    [204, {}, 'delivered', undefined],
    [299, {}, 'delivered', undefined],
    [
      301,
      { Location: 'https://127.0.0.1:1/' },
      'Wrong response from the webhook: 301 Moved Permanently',
      undefined,
    ],
    [404, {}, 'Wrong response from the webhook: 404 Not Found', undefined],
    [410, {}, 'Wrong response from the webhook: 410 Gone', undefined],
    [429, { 'Retry-After': '7' }, 'Wrong response from the webhook: 429 Too Many Requests', 7_000],
    [502, {}, 'Wrong response from the webhook: 502 Bad Gateway', undefined],
    [503, { 'Retry-After': '86400' }, 'Wrong response from the webhook: 503 Service Unavailable', 3_600_000],
    [
      503,
      { 'Retry-After': 'Fri, 01 Jan 2100 00:00:09 GMT', Date: 'Fri, 01 Jan 2100 00:00:00 GMT' },
      'Wrong response from the webhook: 503 Service Unavailable',
      9_000,
    ],
    [599, {}, 'Wrong response from the webhook: 599', undefined],
  ])(
    'an answer %i with the headers %j is reported',
    async ([status, answered, message, retryAfterMs], { onTestFinished }) => {
      const { target, receiver } = await receive(onTestFinished, (_, response) =>
        response.writeHead(status, answered).end(),
      );
      const outcome = await senderFor(onTestFinished).send(target, headers, body);
      expect(outcome).toMatchObject({ kind: 'answered', status, retryAfterMs });
      expect(isDelivered(outcome) ? 'delivered' : errorMessageOf(outcome)).toBe(message);
      expect(receiver.requests()).toBe(1);
    },
  );
});

test('the sender follows no redirect', async ({ onTestFinished }) => {
  const elsewhere = await receive(onTestFinished);
  for (const status of [301, 302, 303, 307, 308]) {
    const { target } = await receive(onTestFinished, (_, response) =>
      response.writeHead(status, { Location: `https://127.0.0.1:${elsewhere.receiver.port}/` }).end(),
    );
    expect(said(await senderFor(onTestFinished).send(target, headers, body))).toBe(`answered ${status}`);
  }
  expect(elsewhere.receiver.connections()).toBe(0);
});

describe('an answer that is too long is cut off', () => {
  test('an answer of 1 GB is cut off at 64 KiB, and its connection is closed', async ({ onTestFinished }) => {
    let written: Socket | undefined;
    const { target, receiver } = await receive(onTestFinished, ({ socket }, response) => {
      written = socket;
      response.setHeader('Content-Length', 2 ** 30);
      createReadStream('/dev/zero', { end: 2 ** 30 - 1 }).pipe(response);
    });
    const outcome = await senderFor(onTestFinished).send(target, headers, body);
    expect(outcome).toMatchObject({ kind: 'answered', status: 200, truncated: true });
    expect(outcome.kind === 'answered' && outcome.body.length).toBe(64 * 1024);
    await expect.poll(() => receiver.open()).toBe(0);
    // The receiver has written more than 64 KiB, because the kernels of both sides buffer data. It must not have
    // written the whole gigabyte.
    expect(written?.bytesWritten).toBeLessThan(32 * 1024 * 1024);
  });

  test.for([
    [64 * 1024 - 1, false],
    [64 * 1024, false],
    [64 * 1024 + 1, true],
  ] as const)('an answer of %i bytes is cut: %s', async ([bytes, truncated], { onTestFinished }) => {
    const { target } = await receive(onTestFinished, (_, response) => response.end(Buffer.alloc(bytes, 'a')));
    const outcome = await senderFor(onTestFinished).send(target, headers, body);
    expect(outcome).toMatchObject({ truncated });
    expect(outcome.kind === 'answered' && outcome.body.length).toBe(Math.min(bytes, 64 * 1024));
  });

  test('a gzip bomb is not decompressed', async ({ onTestFinished }) => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
    const { target } = await receive(onTestFinished, (_, response) =>
      response.setHeader('Content-Encoding', 'gzip').end(bomb),
    );
    const outcome = await senderFor(onTestFinished).send(target, headers, body);
    expect(outcome.kind === 'answered' && outcome.body.equals(bomb.subarray(0, 64 * 1024))).toBe(true);
  });

  test('an endless header counts as a malformed answer', async ({ onTestFinished }) => {
    const { target } = await receive(onTestFinished, ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const filler = `X-Filler: ${'a'.repeat(1_000)}\r\n`;
      const timer = setInterval(() => socket.write(filler.repeat(10)), 1);
      socket.on('close', () => clearInterval(timer));
    });
    expect(said(await senderFor(onTestFinished).send(target, headers, body))).toBe(
      'malformed: Wrong response from the webhook: header is too large',
    );
  });

  test('endless interim answers count as a malformed answer', async ({ onTestFinished }) => {
    const { target } = await receive(onTestFinished, ({ socket }) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 1);
      socket.on('close', () => clearInterval(timer));
    });
    expect(said(await senderFor(onTestFinished).send(target, headers, body))).toBe(
      'malformed: Wrong response from the webhook: not an HTTP answer',
    );
  });
});

describe.concurrent('one deadline covers all phases of a request', () => {
  // On a busy machine, the TLS handshake may take more than a second.
  const bounded = { deadlineMs: 4_000, connectMs: 3_000 };
  const within = async (promise: Promise<unknown>) => {
    const began = performance.now();
    await promise;
    return performance.now() - began;
  };

  test('the deadline ends a request to a receiver that never answers the TLS handshake', async ({
    expect,
    onTestFinished,
  }) => {
    const silent = await startListener();
    onTestFinished(() => silent.close());
    const sender = senderFor(onTestFinished, bounded);
    const sent = sender.send(receiverOf(`https://127.0.0.1:${silent.port}/`), headers, body);
    expect(await within(sent)).toBeLessThan(10_000);
    expect(said(await sent)).toBe('connect: Connection timed out');
    await expect.poll(() => silent.open()).toBe(0);
    expect(sender.stats()).toMatchObject({ connections: 0, inFlight: 0 });
  });

  test('the deadline ends a request to a receiver that never answers', async ({ expect, onTestFinished }) => {
    const { target, receiver } = await receive(onTestFinished, () => {});
    const sender = senderFor(onTestFinished, bounded);
    const sent = sender.send(target, headers, body);
    expect(await within(sent)).toBeLessThan(10_000);
    expect(said(await sent)).toBe('timeout: Read timeout expired');
    await expect.poll(() => receiver.open()).toBe(0);
  });

  test.for(['head', 'body'])(
    'the deadline ends a request to a receiver that sends its %s slowly',
    async (part, { expect, onTestFinished }) => {
      const { target, receiver } = await receive(onTestFinished, ({ socket }) => {
        socket.write(`HTTP/1.1 200 OK\r\n${part === 'head' ? 'X-Drip: ' : 'Content-Length: 100000\r\n\r\n'}`);
        const timer = setInterval(() => socket.write('a'), 20);
        socket.on('close', () => clearInterval(timer));
      });
      const sent = senderFor(onTestFinished, bounded).send(target, headers, body);
      expect(await within(sent)).toBeLessThan(10_000);
      expect(said(await sent)).toBe('timeout: Read timeout expired');
      await expect.poll(() => receiver.open()).toBe(0);
    },
  );

  test('the sender reports an error status as soon as the head arrives, even if the body is too slow', async ({
    expect,
    onTestFinished,
  }) => {
    const { target } = await receive(onTestFinished, (_, response) => {
      response.writeHead(429, { 'Retry-After': '5' }).write('a');
    });
    const outcome = await senderFor(onTestFinished, bounded).send(target, headers, body);
    expect(outcome).toMatchObject({ kind: 'answered', status: 429, retryAfterMs: 5_000, truncated: true });
  });
});

describe('a broken answer', () => {
  test.for<[name: string, answer: (socket: Socket) => void, message: string]>([
    [
      'closed at once',
      (socket) => socket.destroy(),
      'closed: Connection closed before the answer was complete',
    ],
    [
      'closed in the body',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'),
      'closed: Connection closed before the answer was complete',
    ],
    [
      'not HTTP',
      (socket) => socket.end('220 mail.example ESMTP\r\n'),
      'malformed: Wrong response from the webhook: not an HTTP answer',
    ],
    [
      'an upgrade that was not requested',
      (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
      'closed: Connection closed before the answer was complete',
    ],
    [
      'closed in the body of an error status',
      (socket) => socket.end('HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\nabc'),
      'answered 500',
    ],
  ])('a fault is reported: %s', async ([, answer, message], { onTestFinished }) => {
    const { target } = await receive(onTestFinished, ({ socket }) => answer(socket));
    expect(said(await senderFor(onTestFinished).send(target, headers, body))).toBe(message);
  });

  test('a closed port and a port without TLS are reported as errors', async ({ onTestFinished }) => {
    const closed = await startListener();
    await closed.close();
    const plain = await startListener((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    onTestFinished(() => plain.close());
    const sender = senderFor(onTestFinished);
    const to = (port: number) => receiverOf(`https://127.0.0.1:${port}/`);
    expect(said(await sender.send(to(closed.port), headers, body))).toBe('connect: Connection refused');
    expect(said(await sender.send(to(plain.port), headers, body))).toBe('tls: SSL error: handshake failed');
  });

  test('a receiver that offers only TLS below 1.2 is refused', async ({ onTestFinished }) => {
    const old = createTls({
      ...certificate,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL@SECLEVEL=0',
    });
    old.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void old.close());
    const { port } = old.address() as { port: number };
    const to = receiverOf(`https://127.0.0.1:${port}/`, certificate.cert);
    expect(said(await senderFor(onTestFinished).send(to, headers, body))).toBe(
      'tls: SSL error: handshake failed',
    );
  });

  test('the sender reads an answer even while it still sends a large request body', async ({
    onTestFinished,
  }) => {
    const early = createTls(certificate, (socket) => {
      socket.on('error', () => {});
      socket.once('data', () =>
        socket.end('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'),
      );
    });
    await new Promise<void>((resolve) => early.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void early.close());
    const { port } = early.address() as { port: number };
    const to = receiverOf(`https://127.0.0.1:${port}/`, certificate.cert);
    const outcome = await senderFor(onTestFinished).send(to, headers, Buffer.alloc(10 * 1024 * 1024));
    expect(said(outcome)).toMatch(/^answered 413$|^closed: /);
  });
});

test('after an oversized answer, the next delivery succeeds on a new connection', async ({
  onTestFinished,
}) => {
  let turn = 0;
  const { target, receiver } = await receive(onTestFinished, (_, response) => {
    turn += 1;
    response.end(turn % 2 === 1 ? Buffer.alloc(200_000) : 'fine');
  });
  const sender = senderFor(onTestFinished);
  for (let n = 0; n < 6; n += 1) expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  expect([turn, receiver.connections()]).toEqual([6, 4]);
});

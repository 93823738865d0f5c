import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { receiverOf } from '../../src/delivery/outbound/send.js';
import { limits } from '../../src/limits.js';
import { body, certificate, headers, type OnFinished, receive, said, senderFor } from './fixture.js';

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

/** Starts a receiver that holds its answers until they are released, and records the largest number of held answers. */
async function holding(onTestFinished: OnFinished) {
  const held: ServerResponse[] = [];
  let most = 0;
  const order: string[] = [];
  const started = await receive(onTestFinished, (request, response) => {
    held.push(response);
    order.push(String(request.headers['x-n']));
    most = Math.max(most, held.length);
  });
  return { ...started, held, order, most: () => most, release: () => held.shift()?.end() };
}

test('sequential requests to a receiver use one connection', async ({ onTestFinished }) => {
  const { target, receiver } = await receive(onTestFinished);
  const sender = senderFor(onTestFinished);
  for (let n = 0; n < 20; n += 1) expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  expect([receiver.requests(), receiver.connections()]).toEqual([20, 1]);
  expect(sender.stats()).toEqual({ connections: 1, receivers: 1, inFlight: 0 });
});

test('if a receiver closes the connection after each answer, each request opens a new connection', async ({
  onTestFinished,
}) => {
  const { target, receiver } = await receive(onTestFinished, (_, response) =>
    response.setHeader('Connection', 'close').end(),
  );
  const sender = senderFor(onTestFinished);
  for (let n = 0; n < 5; n += 1) expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  expect(receiver.connections()).toBe(5);
  await expect.poll(() => sender.stats().connections).toBe(0);
});

test('a sender opens a limited number of connections per receiver, and other requests wait in order', async ({
  onTestFinished,
}) => {
  const { target, receiver, held, order, most, release } = await holding(onTestFinished);
  const sender = senderFor(onTestFinished, { receiverConnectionsMax: 3 });
  const sent = times(12, (n) => sender.send(target, { ...headers, 'x-n': String(n) }, body));
  for (let n = 0; n < 12; n += 1) {
    await expect.poll(() => held.length).toBe(Math.min(3, 12 - n));
    release();
  }
  expect((await Promise.all(sent)).map(said)).toEqual(times(12, () => 'answered 200'));
  expect([most(), receiver.connections()]).toEqual([3, 3]);
  expect(order.slice(3)).toEqual(times(9, (n) => String(n + 3)));
});

const unsent = 'closed: Given up before the request was sent';

test('a request is not sent if it was given up while it waited for a free connection', async ({
  onTestFinished,
}) => {
  const { target, receiver, held, order, release } = await holding(onTestFinished);
  const sender = senderFor(onTestFinished, { receiverConnectionsMax: 1 });
  let isLate = false;
  const send = (n: string) =>
    sender.send(target, { ...headers, 'x-n': n }, body, undefined, () => n !== 'late' || !isLate);
  const sent = ['first', 'late', 'next'].map(send);
  await expect.poll(() => held.length).toBe(1);
  isLate = true;
  release();
  await expect.poll(() => order).toEqual(['first', 'next']);
  release();
  expect((await Promise.all(sent)).map(said)).toEqual(['answered 200', unsent, 'answered 200']);
  expect([receiver.connections(), sender.stats().inFlight]).toEqual([1, 0]);
});

test('a request is not sent if it was given up while its new connection was opened', async ({
  onTestFinished,
}) => {
  const { target, receiver } = await receive(onTestFinished);
  const sender = senderFor(onTestFinished);
  let isLate = false;
  const late = sender.send(target, headers, body, undefined, () => !isLate);
  isLate = true;
  expect(said(await late)).toBe(unsent);
  expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  expect([receiver.requests(), receiver.connections()]).toEqual([1, 1]);
});

test('requests that wait for a connection fail at their deadline', async ({ onTestFinished }) => {
  const { target } = await holding(onTestFinished);
  const sender = senderFor(onTestFinished, { receiverConnectionsMax: 1, deadlineMs: 2_000 });
  const first = sender.send(target, headers, body);
  const waiting = times(3, () => sender.send(target, headers, body));
  expect(said(await first)).toBe('timeout: Read timeout expired');
  // A waiting request may get a connection that becomes free just before the deadline of the request.
  for (const failed of await Promise.all(waiting))
    expect(said(failed)).toMatch(/^(connect: Connection timed out|timeout: Read timeout expired)$/);
  expect(sender.stats().inFlight).toBe(0);
});

test('if a connection fails, the next waiting request opens a new connection', async ({ onTestFinished }) => {
  const { target, receiver, held, release } = await holding(onTestFinished);
  const sender = senderFor(onTestFinished, { receiverConnectionsMax: 1 });
  const next = times(2, () => sender.send(target, headers, body));
  await expect.poll(() => held.length).toBe(1);
  held[0]?.socket?.destroy();
  held.length = 0;
  expect(said((await next[0]) as never)).toMatch(/^closed: /);
  await expect.poll(() => held.length).toBe(1);
  release();
  expect(said((await next[1]) as never)).toBe('answered 200');
  await expect.poll(() => [receiver.open(), sender.stats().connections]).toEqual([1, 1]);
});

test('at its maximum number of connections, the sender closes only idle connections', async ({
  onTestFinished,
}) => {
  const quiet = await receive(onTestFinished);
  const busy = await holding(onTestFinished);
  const sender = senderFor(onTestFinished, { connectionsMax: 2 });
  expect(said(await sender.send(quiet.target, headers, body))).toBe('answered 200');
  const sent = times(2, () => sender.send(busy.target, headers, body));
  await expect.poll(() => busy.held.length).toBe(2);
  await expect.poll(() => [quiet.receiver.open(), sender.stats().connections]).toEqual([0, 2]);
  expect(said(await sender.send(quiet.target, headers, body))).toBe('busy: Too many connections are open');
  busy.release();
  busy.release();
  expect((await Promise.all(sent)).map(said)).toEqual(['answered 200', 'answered 200']);
  expect(said(await sender.send(quiet.target, headers, body))).toBe('answered 200');
  await expect.poll(() => sender.stats().connections).toBeLessThanOrEqual(2);
});

test('an idle connection is closed after the Keep-Alive timeout that the receiver names', async ({
  onTestFinished,
}) => {
  const { target, receiver } = await receive(onTestFinished, (_, response) =>
    response.setHeader('Keep-Alive', 'timeout=2').end(),
  );
  const sender = senderFor(onTestFinished, { poolIdleMs: 100 });
  await sender.send(target, headers, body);
  expect(sender.stats()).toEqual({ connections: 1, receivers: 1, inFlight: 0 });
  await expect.poll(() => sender.stats()).toEqual({ connections: 0, receivers: 0, inFlight: 0 });
  await expect.poll(() => receiver.open()).toBe(0);
  expect(said(await sender.send(target, headers, body))).toBe('answered 200');
});

test('a receiver that hangs does not slow requests to other receivers', async ({ onTestFinished }) => {
  const hung = await holding(onTestFinished);
  const good = await receive(onTestFinished);
  const sender = senderFor(onTestFinished);
  const stuck = times(40, () => sender.send(hung.target, headers, body));
  await expect.poll(() => hung.held.length).toBe(40);
  expect((await Promise.all(times(40, () => sender.send(good.target, headers, body)))).map(said)).toEqual(
    times(40, () => 'answered 200'),
  );
  await sender.close();
  expect(new Set((await Promise.all(stuck)).map(said))).toEqual(
    new Set(['closed: Connection closed before the answer was complete']),
  );
});

test('closing the sender also ends requests that wait for a connection', async ({ onTestFinished }) => {
  const { target, receiver, held } = await holding(onTestFinished);
  const sender = senderFor(onTestFinished, { receiverConnectionsMax: 1 });
  const sent = times(3, () => sender.send(target, headers, body));
  await expect.poll(() => held.length).toBe(1);
  await sender.close();
  expect((await Promise.all(sent)).map(said)).toEqual(
    times(3, () => 'closed: Connection closed before the answer was complete'),
  );
  await expect.poll(() => receiver.open()).toBe(0);
  expect(receiver.requests()).toBe(1);
});

test('requests share a connection only if they have the same host, port and certificate', () => {
  const key = (url: string, anchor?: string) => receiverOf(url, anchor).key;
  expect(key('https://A.example/x')).toBe(key('https://a.example.:443/y?z'));
  expect(key('https://a.example')).not.toBe(key('https://a.example:8443'));
  expect(key('https://a.example')).not.toBe(key('https://a.example', certificate.cert));
});

test('a sender opens a limited number of connections simultaneously', async ({ onTestFinished }) => {
  const most = limits.webhook_receiver_dials_max;
  const { target, receiver, held, release } = await holding(onTestFinished);
  const sender = senderFor(onTestFinished);
  const sent = times(3 * most, () => sender.send(target, headers, body));
  expect(sender.stats().connections).toBe(most);
  // The sender may open its next connection as soon as this connection is open, without waiting for an answer.
  await expect.poll(() => held.length).toBe(3 * most);
  expect(receiver.connections()).toBe(3 * most);
  while (held.length > 0) release();
  expect((await Promise.all(sent)).map(said)).toEqual(sent.map(() => 'answered 200'));
});

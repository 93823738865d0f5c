import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Pool, request as undiciRequest } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ApiError } from '../../src/errors.js';
import type { ApiRequest, RequestHandler } from '../../src/server/request.js';
import { expectAlive, type Fixture, headOf, isCurrent, RawClient, start } from './fixture.js';

const big = JSON.stringify({ text: 'é'.repeat(2_500_000) });
let fixture: Fixture;
let base: string;
let last: ApiRequest;
let aborts: number;
/** Ends the wait of the last request to /waits. */
let release: () => void;

const routes: Record<string, RequestHandler> = {
  '/echo': (request) => {
    const {
      method,
      query,
      contentType,
      authorization,
      lastEventId,
      idempotencyKey,
      coalesce,
      consumer,
      consumerTimeout,
      remoteAddress,
    } = request;
    const body = request.body.toString();
    const seen = {
      method,
      query,
      contentType,
      authorization,
      lastEventId,
      idempotencyKey,
      coalesce,
      consumer,
      consumerTimeout,
      remoteAddress,
      body,
    };
    request.reply(200, JSON.stringify(seen));
  },
  '/later': async (request) => {
    await sleep(5);
    request.reply(201, JSON.stringify({ remote: request.remoteAddress }));
  },
  '/limited': (request) => request.reply(429, '{"ok":false}', 7),
  '/picture': (request) => request.replyWith(200, 'image/png', Buffer.from([0, 1, 255])),
  '/throws': () => {
    throw new Error('inner detail');
  },
  '/rejects': async () => {
    await sleep(5);
    throw new Error('inner detail');
  },
  '/refuses': () => {
    throw new ApiError('too_many_requests', { retry_after: 3 });
  },
  '/refuses-later': async () => {
    await sleep(5);
    throw new ApiError('chat_not_found');
  },
  '/forgets': () => undefined,
  '/forgets-later': () => sleep(5),
  '/twice': (request) => {
    request.reply(200, '"first"');
    request.reply(500, '"second"');
  },
  '/throws-after': (request) => {
    request.reply(200, '"first"');
    throw new ApiError('bad_request');
  },
  '/waits': async (request) => {
    last = request;
    request.onAbort(() => {
      aborts++;
      throw new Error('listener');
    });
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    request.reply(200, '"too late"');
  },
  '/big': (request) => request.reply(200, big),
  '/big-later': (request) => sleep(5).then(() => request.reply(200, Buffer.from(big))),
};

beforeAll(async () => {
  fixture = await start((request) => (routes[request.path] ?? ((r) => r.reply(200, '{"ok":true}')))(request));
  base = `http://127.0.0.1:${fixture.port}`;
});
afterAll(() => fixture.server.close());
beforeEach(() => {
  fixture.faults.length = 0;
  fixture.seen.length = 0;
  aborts = 0;
});

test('a handler receives the request as it was sent', async () => {
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    Authorization: 'Bearer x',
    'Last-Event-ID': '17',
    'Idempotency-Key': 'k-1',
    'X-Service-Coalesce': '1',
    'X-Service-Consumer': 'one',
    'X-Service-Consumer-Timeout': '30',
  };
  const sent = await fetch(`${base}/echo?a=%20b&c`, { method: 'PATCH', headers, body: '{"é":1}' });
  expect(sent.headers.get('content-type')).toBe('application/json');
  expect(await sent.json()).toEqual({
    method: 'PATCH',
    query: 'a=%20b&c',
    contentType: 'application/json; charset=utf-8',
    authorization: 'Bearer x',
    lastEventId: '17',
    idempotencyKey: 'k-1',
    coalesce: '1',
    consumer: 'one',
    consumerTimeout: '30',
    remoteAddress: '127.0.0.1',
    body: '{"é":1}',
  });
  const bare = new RawClient(fixture.port);
  await bare.send(headOf('GET /echo'));
  await bare.until(() => bare.text.endsWith('}'));
  const empty = {
    query: '',
    contentType: '',
    authorization: '',
    lastEventId: '',
    idempotencyKey: '',
    coalesce: '',
    consumer: '',
    consumerTimeout: '',
    body: '',
  };
  expect(JSON.parse(bare.text.split('\r\n\r\n')[1]!)).toMatchObject(empty);
  bare.destroy();
});

test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
  'a %s request reaches the handler',
  async (method) => {
    const response = await fetch(`${base}/echo`, { method });
    expect(((await response.json()) as { method: string }).method).toBe(method);
  },
);

test('a TRACE request gets 405, and its connection ends', async () => {
  const client = await new RawClient(fixture.port).send(headOf('TRACE /x'));
  await client.untilClosed();
  expect(client.text).toContain('HTTP/1.1 405 Method Not Allowed\r\n');
  expect(client.text.endsWith('{"ok":false,"error_code":405,"description":"Method Not Allowed"}')).toBe(true);
  expect(fixture.seen).toEqual([]);
  client.destroy();
});

const internal = '{"ok":false,"error_code":500,"description":"Internal Server Error"}';

test.each<[string, number, string]>([
  ['/later', 201, '{"remote":"127.0.0.1"}'],
  ['/refuses-later', 400, '{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}'],
  ['/twice', 200, '"first"'],
  ['/throws-after', 200, '"first"'],
  ['/throws', 500, internal],
  ['/rejects', 500, internal],
  ['/forgets', 500, internal],
  ['/forgets-later', 500, internal],
])('a request to %s is answered with %i', async (path, status, body) => {
  const response = await fetch(base + path);
  expect(response.status).toBe(status);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(await response.text()).toBe(body);
  const silent = path === '/later' || path === '/refuses-later';
  expect(fixture.faults).toHaveLength(silent ? 0 : 1);
  expect(JSON.stringify(fixture.faults.map(String))).not.toContain(path);
  expect(fixture.server.openRequests()).toBe(0);
});

test.each(['GET', 'HEAD', 'POST'])('a reply to %s has Cache-Control: no-store', async (method) => {
  for (const path of ['/later', '/limited', '/big', '/big-later', '/picture', '/nothing']) {
    const answer = await fetch(`${base}${path}`, { method });
    await answer.arrayBuffer();
    expect([path, answer.headers.get('cache-control')]).toEqual([path, 'no-store']);
  }
});

test('a reply has a Retry-After header only if its handler set one', async () => {
  expect((await fetch(`${base}/limited`)).headers.get('retry-after')).toBe('7');
  const refused = await fetch(`${base}/refuses`);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3']);
  expect(await refused.json()).toMatchObject({ parameters: { retry_after: 3 } });
  expect((await fetch(`${base}/x`)).headers.get('retry-after')).toBeNull();
});

test('a handler can override the content type', async () => {
  const response = await fetch(`${base}/picture`);
  expect(response.headers.get('content-type')).toBe('image/png');
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(new Uint8Array([0, 1, 255]));
});

test.each(['/limited', '/later', '/big', '/picture'])(
  'HEAD %s returns the head of the GET reply and no body',
  async (path) => {
    const got = await fetch(base + path);
    const length = String((await got.arrayBuffer()).byteLength);
    const client = await new RawClient(fixture.port).send(headOf(`HEAD ${path}`));
    await client.until(() => client.text.includes('\r\n\r\n'));
    await client.send(headOf(`HEAD ${path}`));
    await client.until(() => client.statuses.length === 2);
    expect(client.statuses).toEqual([got.status, got.status]);
    expect(client.text).toContain(`Content-Length: ${length}\r\n`);
    expect(client.text.endsWith('\r\n\r\n')).toBe(true);
    expect(client.text.split('\r\n\r\n')).toHaveLength(3);
    client.destroy();
  },
);

test.each(['/big', '/big-later'])('a slow reader gets all of a large reply: %s', async (path) => {
  const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round < 2; round++) {
    const request = httpRequest(base + path, { agent }).end();
    const [response] = await once(request, 'response');
    await sleep(50);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    expect(response.headers['content-length']).toBe(String(Buffer.byteLength(big)));
    expect(Buffer.concat(chunks).toString() === big).toBe(true);
  }
  agent.destroy();
  expect(fixture.server.openRequests()).toBe(0);
});

test('one connection serves many requests', async () => {
  const client = new RawClient(fixture.port);
  for (let i = 1; i <= 50; i++) {
    await client.send(`${headOf('POST /echo', 'Content-Length: 5', 'Connection: keep-alive')}abcde`);
    await client.until(() => client.statuses.length === i);
  }
  expect(client.closed).toBe(false);
  await client.send(headOf('POST /later', 'Content-Length: 5', 'connection: close'), 'abcde');
  await client.untilClosed();
  expect(client.statuses).toHaveLength(51);
});

test('the current HTTP engine answers HTTP/1.0 with 505, and the older engine does not answer', async () => {
  const client = await new RawClient(fixture.port).send('GET /echo HTTP/1.0\r\nHost: a\r\n\r\n');
  await client.until(() => client.closed, isCurrent ? 15_000 : 500);
  expect([client.closed, client.statuses]).toEqual(isCurrent ? [true, [505]] : [false, []]);
  expect(fixture.seen).toEqual([]);
  client.destroy();
  await expectAlive(fixture.port);
});

test('a request for a WebSocket upgrade is handled like any other request', async () => {
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEC==',
  ];
  const client = await new RawClient(fixture.port).send(headOf('GET /echo', ...upgrade));
  await client.until(() => client.statuses.length > 0);
  expect(client.statuses).toEqual([200]);
  client.destroy();
});

test('when a client disconnects, the abort listener runs once and a late reply is dropped', async () => {
  const client = await new RawClient(fixture.port).send(headOf('GET /waits'));
  await client.until(() => fixture.seen.length === 1);
  expect([last.aborted, fixture.server.openRequests()]).toEqual([false, 1]);
  client.destroy();
  await expect.poll(() => [last.aborted, aborts, fixture.server.openRequests()]).toEqual([true, 1, 0]);
  last.onAbort(() => aborts++);
  expect(aborts).toBe(2);
  release();
  await sleep(30);
  expect(fixture.faults.map(String)).toEqual(['Error: listener']);
  await expectAlive(fixture.port);
});

test('if the reply was sent before the client disconnects, the abort listener does not run', async () => {
  const client = await new RawClient(fixture.port).send(headOf('GET /waits'));
  await client.until(() => fixture.seen.length === 1);
  release();
  await client.until(() => client.statuses.length === 1);
  client.destroy();
  await expect.poll(() => fixture.server.openRequests()).toBe(0);
  await sleep(30);
  expect([last.aborted, aborts, fixture.server.openRequests()]).toEqual([false, 0, 0]);
});

test('undici sends many requests over few connections', async () => {
  const pool = new Pool(base, { connections: 4 });
  const paths = Array.from({ length: 200 }, (_, i) => (i % 3 === 0 ? '/later' : '/echo'));
  const statuses = await Promise.all(
    paths.map(async (path, i) => {
      const body = i % 2 === 0 ? null : `{"i":${i}}`;
      const response = await pool.request({ path, method: body ? 'POST' : 'GET', body });
      const answer = (await response.body.json()) as { body?: string };
      if (path === '/echo') expect(answer.body).toBe(body ?? '');
      return response.statusCode;
    }),
  );
  expect(statuses).toEqual(paths.map((path) => (path === '/later' ? 201 : 200)));
  await pool.close();
  const streamed = await undiciRequest(`${base}/echo`, {
    method: 'POST',
    body: Readable.from(
      (async function* () {
        yield Buffer.from('ab');
        await sleep(10);
        yield Buffer.from('cd');
      })(),
    ),
  });
  expect(await streamed.body.json()).toMatchObject({ body: 'abcd' });
});

test('curl sends an upload that waits for 100 Continue', async () => {
  const curl = async (...args: string[]) =>
    JSON.parse(
      (await promisify(execFile)('curl', ['-sS', '--max-time', '30', ...args, `${base}/echo`])).stdout,
    );
  expect(await curl('-d', 'a=b')).toMatchObject({ method: 'POST', body: 'a=b' });
  const expecting = await curl('-F', 'f=@package.json;filename=é', '-H', 'Expect: 100-continue');
  expect(expecting.body).toContain('filename="é"');
  expect(await curl('-T', 'package.json', '-H', 'Transfer-Encoding: chunked')).toMatchObject({
    method: 'PUT',
  });
  expect(fixture.faults).toEqual([]);
});

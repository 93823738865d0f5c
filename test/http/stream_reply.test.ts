/** Tests replies from a source stream: the sent bytes, the read-ahead for a slow client, and the end of a reply. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { ApiRequest } from '../../src/server/request.js';
import { expectAlive, type Fixture, headOf, RawClient, start } from './fixture.js';

let fixture: Fixture;
const clients: RawClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await fixture.server.close();
});

interface Source {
  readonly stream: Readable;
  readonly read: () => number;
}

function source(total: number, chunk = 64 * 1024): Source {
  let made = 0;
  const stream = new Readable({
    highWaterMark: chunk,
    read() {
      const size = Math.min(chunk, total - made);
      const bytes = Buffer.alloc(size);
      for (let i = 0; i < size; i++) bytes[i] = (made + i) % 251;
      made += size;
      this.push(size === 0 ? null : bytes);
    },
  });
  return { stream, read: () => made };
}

async function serve(answer: (request: ApiRequest) => void): Promise<void> {
  fixture = await start((request) =>
    request.path === '/alive' ? request.reply(200, '{}') : answer(request),
  );
}

async function ask(...head: [string, ...string[]]): Promise<RawClient> {
  const client = await new RawClient(fixture.port).send(headOf(...head));
  clients.push(client);
  return client;
}

const headers = [
  ['Content-Type', 'text/x'],
  ['ETag', '"e"'],
] as const;

test('a reply from a source stream has the given status, headers and bytes', async () => {
  await serve((request) => request.replyStream({ status: 206, headers, length: 5, body: source(5).stream }));
  const client = await ask('GET /a');
  await client.until(() => client.text.includes('\u0004'));
  expect(client.text).toBe(
    'HTTP/1.1 206 Partial Content\r\nContent-Type: text/x\r\nETag: "e"\r\nContent-Length: 5\r\n\r\n\u0000\u0001\u0002\u0003\u0004',
  );
  await client.send(headOf('GET /b'));
  await client.until(() => client.statuses.length === 2);
  expect(client.statuses).toEqual([206, 206]);
  expect(client.closed).toBe(false);
});

test('replies to HEAD and replies with status 304 have no body', async () => {
  const made: Source[] = [];
  await serve((request) => {
    const one = source(5);
    made.push(one);
    const status = request.path === '/304' ? 304 : 200;
    request.replyStream({ status, headers, length: 5, body: status === 304 ? null : one.stream });
  });
  const client = await ask('HEAD /a');
  await client.until(() => client.statuses.length === 1);
  expect(client.text).toBe(
    'HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nETag: "e"\r\nContent-Length: 5\r\n\r\n',
  );
  expect(made[0]?.stream.destroyed).toBe(true);
  await client.send(headOf('GET /304'));
  await client.until(() => client.statuses.length === 2);
  expect(client.text.slice(client.text.lastIndexOf('HTTP/'))).toBe(
    'HTTP/1.1 304 Not Modified\r\nContent-Type: text/x\r\nETag: "e"\r\n\r\n',
  );
});

test.each(['GET', 'HEAD'])(
  '%s with Connection: close ends the connection after the last byte',
  async (verb) => {
    await serve((request) =>
      request.replyStream({ status: 200, headers, length: 500_000, body: source(500_000).stream }),
    );
    const client = await ask(`${verb} /`, 'Connection: close');
    await client.untilClosed();
    expect(client.text).toContain('Content-Length: 500000\r\n');
    expect(client.text.length - client.text.indexOf('\r\n\r\n') - 4).toBe(verb === 'GET' ? 500_000 : 0);
  },
);

test('a chunked request for a streamed reply is refused, because the connection could not be closed after the reply', async () => {
  const one = source(5);
  await serve((request) => request.replyStream({ status: 200, headers, length: 5, body: one.stream }));
  const client = await new RawClient(fixture.port).send(
    `${headOf('GET /', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  );
  clients.push(client);
  await client.untilClosed();
  expect(client.statuses).toEqual([400]);
  expect(one.stream.destroyed).toBe(true);
});

test('a source stream is read only as fast as the client reads', async () => {
  const total = 40 * 1024 * 1024;
  const one = source(total);
  await serve((request) => request.replyStream({ status: 200, headers, length: total, body: one.stream }));
  const client = new RawClient(fixture.port);
  clients.push(client);
  // Reads the socket itself, because the client of the fixture would keep everything as text.
  client.socket.removeAllListeners('data');
  client.socket.pause();
  client.socket.write(headOf('GET /'));
  await expect.poll(one.read).toBeGreaterThan(0);
  let ahead = 0;
  while (ahead !== one.read()) {
    ahead = one.read();
    await sleep(300);
  }
  // The server reads ahead of a slow client by at most 16 MiB. This leaves room for the buffers of both kernels and for
  // some chunks of the server.
  expect(ahead).toBeLessThan(16 * 1024 * 1024);

  let received = -1;
  let wrong = 0;
  client.socket.on('data', (chunk) => {
    let at = 0;
    if (received < 0) {
      at = chunk.indexOf('\r\n\r\n') + 4;
      received = 0;
    }
    for (; at < chunk.length; at++) if (chunk[at] !== received++ % 251) wrong++;
  });
  client.socket.resume();
  await client.until(() => received >= total, 40_000);
  expect({ received, wrong }).toEqual({ received: total, wrong: 0 });
  expect(one.stream.destroyed).toBe(true);
  await expectAlive(fixture.port);
});

test('the source stream is destroyed immediately when the client disconnects', async () => {
  const one = source(40 * 1024 * 1024);
  await serve((request) =>
    request.replyStream({ status: 200, headers, length: 40 * 1024 * 1024, body: one.stream }),
  );
  const client = await ask('GET /');
  await client.until(() => client.statuses.length === 1);
  client.socket.pause();
  await sleep(100);
  client.socket.destroy();
  await client.until(() => one.stream.destroyed);
  expect(one.stream.destroyed).toBe(true);
  expect(fixture.server.openRequests()).toBe(0);
  await expectAlive(fixture.port);
});

test('if the client has disconnected before the reply, the source stream of the reply is destroyed', async () => {
  const one = source(5);
  let answered = false;
  await serve((request) => {
    request.onAbort(() => {
      request.replyStream({ status: 200, headers, length: 5, body: one.stream });
      answered = true;
    });
    return new Promise(() => undefined);
  });
  const client = await ask('GET /');
  await client.until(() => fixture.server.openRequests() === 1);
  client.destroy();
  await client.until(() => answered);
  expect(one.stream.destroyed).toBe(true);
});

test('if a source stream fails before its first byte, the reply is a 503', async () => {
  await serve((request) => {
    const one = source(200_000);
    const sends = request.path === '/late';
    const body = new Readable({
      read() {
        if (sends && this.readableFlowing !== undefined && one.read() === 0)
          this.push(one.stream.read() ?? Buffer.alloc(10));
        else setImmediate(() => this.destroy(new Error('the disk is gone')));
      },
    });
    request.replyStream({ status: 200, headers, length: 200_000, body });
  });
  const early = await ask('GET /early');
  await early.until(() => early.statuses.length === 1);
  expect(early.statuses).toEqual([503]);
  expect(early.text).toContain('Retry-After: 1');
  const late = await ask('GET /late');
  await late.untilClosed();
  expect(late.statuses).toEqual([200]);
  expect(fixture.faults.map(String)).toEqual(['Error: the disk is gone', 'Error: the disk is gone']);
  await expectAlive(fixture.port);
});

test('if a source stream ends too early, the connection is closed, so that the client stops waiting', async () => {
  await serve((request) =>
    request.replyStream({ status: 200, headers, length: 100, body: source(60).stream }),
  );
  const client = await ask('GET /');
  await client.untilClosed();
  expect(fixture.faults.map(String)).toEqual(['Error: the file is shorter than announced']);
});

test('simultaneous replies from source streams do not mix their bytes', async () => {
  await serve((request) => {
    const size = Number(request.path.slice(1));
    request.replyStream({ status: 200, headers, length: size, body: source(size, 10_000).stream });
  });
  const sizes = Array.from({ length: 40 }, (_, i) => 1 + i * 12_345);
  const bodies = await Promise.all(
    sizes.map(async (size) =>
      Buffer.from(await (await fetch(`http://127.0.0.1:${fixture.port}/${size}`)).arrayBuffer()),
    ),
  );
  expect(bodies.map((body) => body.length)).toEqual(sizes);
  expect(bodies.every((body) => body.every((byte, i) => byte === i % 251))).toBe(true);
});

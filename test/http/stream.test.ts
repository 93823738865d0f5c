import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { EngineResponse } from '../../src/http/engine.js';
import { ReplyStream } from '../../src/http/event-stream.js';
import { eventForm } from '../../src/http/reply.js';
import { limits } from '../../src/limits.js';
import type { ApiRequest, EventStream, StreamForm } from '../../src/server/request.js';
import { systemTime } from '../../src/time.js';
import { expectAlive, type Fixture, headOf, RawClient, start } from './fixture.js';

const lines: StreamForm = {
  contentType: 'application/x-ndjson',
  headers: [['X-More', '1']],
  filler: '{"n":-1}\n',
};
let fixture: Fixture;
let stream: EventStream | undefined;
let request: ApiRequest;
let aborts = 0;

beforeAll(async () => {
  fixture = await start((incoming) => {
    if (incoming.path !== '/stream' && incoming.path !== '/lines') return incoming.reply(200, '{}');
    request = incoming;
    incoming.onAbort(() => aborts++);
    stream = incoming.openStream(incoming.path === '/lines' ? lines : undefined);
  });
});
afterAll(() => fixture.server.close());
beforeEach(() => {
  stream = undefined;
  aborts = 0;
});

async function open(path = '/stream'): Promise<RawClient> {
  const client = await new RawClient(fixture.port).send(headOf(`GET ${path}`));
  await client.until(() => client.text.includes('\r\n\r\n'));
  return client;
}

function events(client: RawClient): string[] {
  const body = client.text.slice(client.text.indexOf('\r\n\r\n') + 2).replace(/\r\n[\da-f]+\r\n/g, '');
  return [...body.matchAll(/data: ([^\n]*)\n/g)].map((match) => match[1]!);
}

/** Returns the decoded body of the first answer. Throws if the body is not correctly chunked. */
function unchunked(client: RawClient): string {
  let rest = Buffer.from(client.text.slice(client.text.indexOf('\r\n\r\n') + 4), 'latin1');
  const parts: Buffer[] = [];
  for (;;) {
    const [line = '', length = ''] = /^([\da-f]+)\r\n/.exec(rest.toString('latin1', 0, 20)) ?? [];
    const bytes = Number.parseInt(length, 16);
    const body = rest.subarray(line.length, line.length + bytes);
    const end = rest.toString('latin1', line.length + bytes, line.length + bytes + 2);
    if (line === '' || end !== '\r\n')
      throw new Error(`no chunk: ${JSON.stringify(rest.toString('latin1', 0, 60))}`);
    if (bytes === 0) return Buffer.concat(parts).toString();
    parts.push(body);
    rest = rest.subarray(line.length + bytes + 2);
  }
}

test('an event stream sends its head immediately, and each event when it is written', async () => {
  const client = await open();
  expect(client.text).toContain('HTTP/1.1 200 OK\r\n');
  for (const header of [
    'Content-Type: text/event-stream',
    'Cache-Control: no-store',
    'X-Accel-Buffering: no',
  ]) {
    expect(client.text).toContain(`${header}\r\n`);
  }
  for (let i = 0; i < 3; i++) {
    expect(stream!.write(`data: é${i}\n\n`)).toBe(true);
    await client.until(() => events(client).length === i + 1);
    expect(events(client)).toHaveLength(i + 1);
  }
  expect(fixture.server.openRequests()).toBe(1);
  stream!.write('retry: 1\ndata: last\n\n');
  stream!.close();
  stream!.close();
  expect(stream!.write('data: after\n\n')).toBe(false);
  await client.until(() => client.text.endsWith('0\r\n\r\n'));
  expect(events(client).at(-1)).toBe('last');
  // Checks that no HTTP header is between the chunks. Such a header would break the stream for a load balancer.
  expect(unchunked(client)).toMatch(/^:\n\ndata: é0\n\ndata: é1\n\ndata: é2\n\nretry: 1\ndata: last\n\n$/);
  await client.send(headOf('GET /x'));
  await client.until(() => client.text.endsWith('{}'));
  expect(client.statuses).toEqual([200, 200]);
  expect([aborts, fixture.server.openRequests(), fixture.faults.length]).toEqual([0, 0, 0]);
});

test('when a client disconnects, the abort listener runs and the stream accepts no more events', async () => {
  const client = await open();
  client.destroy();
  await client.until(() => aborts > 0);
  expect([aborts, request.aborted, fixture.server.openRequests()]).toEqual([1, true, 0]);
  expect(stream!.write('data: x\n\n')).toBe(false);
  stream!.close();
  await sleep(20);
  await expectAlive(fixture.port);
});

test('an event stream may close at the moment its client disconnects', async () => {
  const client = await open();
  client.socket.resetAndDestroy();
  stream!.write('data: x\n\n');
  stream!.close();
  await client.until(() => fixture.server.openRequests() === 0);
  expect(fixture.server.openRequests()).toBe(0);
  await expectAlive(fixture.port);
});

test('the buffer for a client that stops reading is bounded', async () => {
  const client = await open();
  client.socket.pause();
  const filler = 'x'.repeat(10_000);
  let written = 0;
  while (written < 10_000 && stream!.write(`data: ${written}-${filler}\n\n`)) {
    written++;
    if (written % 100 === 0) await sleep(1);
  }
  expect(written, 'the limit of the buffer was never reached').toBeLessThan(10_000);
  expect(written * filler.length).toBeGreaterThan(limits.stream_buffer_bytes_max / 2);
  client.socket.resume();
  await client.until(() => events(client).length === written, 30_000);
  expect(events(client).map((event) => Number(event.split('-')[0]))).toEqual(
    Array.from({ length: written }, (_, i) => i),
  );
  expect(stream!.write('data: again\n\n')).toBe(true);
  await client.until(() => events(client).at(-1) === 'again');
  expect(events(client).at(-1)).toBe('again');
  client.destroy();
});

test('events that are buffered for a slow reader are sent before the stream ends', async () => {
  const client = await open();
  client.socket.pause();
  const filler = 'x'.repeat(10_000);
  let written = 0;
  while (stream!.write(`data: ${written}-${filler}\n\n`)) written++;
  stream!.close();
  await sleep(50);
  client.socket.resume();
  await client.until(() => client.text.endsWith('0\r\n\r\n'), 30_000);
  expect(events(client)).toHaveLength(written);
  client.destroy();
});

test('a client is disconnected if it does not accept the rest of an ended stream', async () => {
  const client = await open();
  client.socket.pause();
  const filler = 'x'.repeat(10_000);
  while (stream!.write(`data: ${filler}\n\n`));
  stream!.close();
  await client.until(() => fixture.server.openRequests() === 0);
  expect(fixture.server.openRequests()).toBe(0);
  client.socket.resume();
  await client.untilClosed();
  expect(client.text.endsWith('0\r\n\r\n')).toBe(false);
});

test('the buffers of all event streams together are bounded', () => {
  const blocked = { onWritable: () => undefined, cork: (work: () => void) => work(), write: () => false };
  const room = { time: systemTime, streamBytes: limits.streams_buffer_bytes_max - 1_000 };
  const made = () => new ReplyStream(room, blocked as unknown as EngineResponse, eventForm, () => undefined);
  const streams = [made(), made()];
  expect(streams[0]!.write('x'.repeat(600))).toBe(true);
  expect(streams[1]!.write('x'.repeat(600))).toBe(false);
  for (const each of streams) each.abandon();
  expect(room.streamBytes).toBe(limits.streams_buffer_bytes_max - 1_000);
});

test('a HEAD request for an event stream gets no body and leaves no request open', async () => {
  const client = await new RawClient(fixture.port).send(headOf('HEAD /stream'));
  await client.until(() => client.text.includes('\r\n\r\n'));
  expect(client.text).toContain('Content-Type: text/event-stream\r\n');
  expect(client.text.endsWith('\r\n\r\n')).toBe(true);
  expect(stream!.write('data: x\n\n')).toBe(false);
  expect(fixture.server.openRequests()).toBe(0);
  client.destroy();
});

test('a stream of lines is written only as fast as the client reads', async () => {
  const client = await open('/lines');
  expect(client.text).toContain('Content-Type: application/x-ndjson\r\nX-More: 1\r\n');
  client.socket.pause();
  const all = 1_500;
  let written = 0;
  const writing = (async () => {
    const filler = 'x'.repeat(10_000);
    for (; written < all; written++) {
      expect(stream!.write(`${JSON.stringify({ n: written, filler })}\n`)).toBe(true);
      await stream!.drained();
    }
    stream!.close();
  })();
  await sleep(200);
  expect(written).toBeLessThan(all);
  client.socket.resume();
  await writing;
  await client.until(() => client.text.endsWith('\r\n0\r\n\r\n'), 30_000);
  const body = client.text.slice(client.text.indexOf('\r\n\r\n') + 2).replace(/\r\n[\da-f]+\r\n/g, '');
  const numbers = [...body.matchAll(/"n":(-?\d+)/g)].map(([, n]) => Number(n)).filter((n) => n >= 0);
  expect(numbers).toEqual(Array.from({ length: all }, (_, n) => n));
  expect([client.closed, fixture.server.openRequests(), fixture.faults.length]).toEqual([false, 0, 0]);
  await client.send(headOf('GET /other'));
  await client.until(() => client.text.endsWith('{}'));
  client.destroy();
});

test('if a stream of lines fails, it ends without a final chunk', async () => {
  const client = await open('/lines');
  stream!.write('{"n":1}\n');
  stream!.break();
  await stream!.drained();
  expect(stream!.write('{"n":2}\n')).toBe(false);
  await client.untilClosed();
  expect(client.text.endsWith('0\r\n\r\n')).toBe(false);
  expect(fixture.server.openRequests()).toBe(0);
});

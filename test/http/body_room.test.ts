/**
 * Tests the memory limits for request bodies: in total, per client address, and for callers whose token has not been
 * checked.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiError } from '../../src/errors.js';
import { BodyBuffer, BodyRoom, bodyRoomBytes } from '../../src/http/body.js';
import { limits } from '../../src/limits.js';
import { expectAlive, type Fixture, headOf, RawClient, start } from './fixture.js';

const mebibyte = 1024 * 1024;
let fixture: Fixture;
const clients: RawClient[] = [];

beforeAll(async () => {
  fixture = await start((request) => request.reply(200, String(request.body.length)), {
    bodiesBytesMax: 16 * mebibyte,
  });
});
afterAll(async () => {
  for (const client of clients) client.destroy();
  await fixture.server.close();
});

const upload = 'Content-Type: multipart/form-data; boundary=b';

async function begin(bytes: number, length: number, ...headers: string[]): Promise<RawClient> {
  return beginAt(fixture.port, '/x', bytes, length, ...headers);
}

async function beginAt(port: number, path: string, bytes: number, length: number, ...headers: string[]) {
  const client = new RawClient(port);
  clients.push(client);
  await client.send(headOf(`POST ${path}`, `Content-Length: ${length}`, ...headers));
  await client.send(Buffer.alloc(bytes, 'x'));
  return client;
}

const answered = (client: RawClient) => client.until(() => client.statuses.length > 0);

test('uploads that never finish are refused before they fill the memory', async () => {
  expect(limits.body_bytes_max).toBe(mebibyte);
  const sent: RawClient[] = [];
  for (let n = 0; n < 3; n++) sent.push(await begin(3 * mebibyte, 4 * mebibyte, upload));
  // The service refuses the upload whose bytes arrive last.
  const refused = () => sent.filter(({ statuses }) => statuses.length > 0);
  await sent[0]?.until(() => refused().length > 0);
  expect(refused().map(({ statuses }) => statuses)).toEqual([[429]]);
  expect(refused()[0]?.text).toContain('Retry-After: 1');
  const open = sent.filter(({ statuses }) => statuses.length === 0);
  const call = await answered(await begin(mebibyte, mebibyte));
  expect(call.statuses).toEqual([200]);
  // Shows that the memory of answered requests and of broken connections has been freed.
  await open[0]?.send(Buffer.alloc(mebibyte, 'x'));
  await answered(open[0] as RawClient);
  expect(open[0]?.statuses).toEqual([200]);
  open[1]?.destroy();
  // The server frees the memory of a broken connection only after it has noticed the break.
  const upload8 = async () => (await answered(await begin(8 * mebibyte, 8 * mebibyte, upload))).statuses;
  await expect.poll(upload8).toEqual([200]);
  expect(fixture.faults).toEqual([]);
});

describe('each caller can use only a limited share of the memory for request bodies', () => {
  let admitting: Fixture;
  let found: (isKnown: boolean) => void = () => undefined;
  const waiting = new Promise<boolean>((resolve) => {
    found = resolve;
  });
  let refuseSlowly: () => void = () => undefined;
  const slowly = new Promise<boolean>((_, reject) => {
    refuseSlowly = () => reject(new ApiError('unauthorized'));
  });
  // Prevents an unhandled rejection. The promise `slowly` may be rejected before a call awaits it.
  slowly.catch(() => undefined);
  beforeAll(async () => {
    admitting = await start((request) => request.reply(200, String(request.body.length)), {
      bodiesBytesMax: 128 * mebibyte,
      // Each request names its client address in a header.
      clientAddress: (request) => request.forwardedFor,
      admit: ({ path }) => {
        if (path === '/stranger') return false;
        if (path === '/waiting') return waiting;
        if (path === '/refused_slowly') return slowly;
        if (path === '/refused') throw new ApiError('unauthorized');
        return path === '/refused_later' ? Promise.reject(new ApiError('unauthorized')) : true;
      },
    });
  });
  afterAll(() => admitting.server.close());

  test('if the token of a caller is refused late, the caller gets only one answer', async () => {
    const sent: RawClient[] = [];
    for (let n = 0; n < 5; n++)
      sent.push(
        await beginAt(admitting.port, '/refused_slowly', 3 * mebibyte, 4 * mebibyte, upload, from('e')),
      );
    refuseSlowly();
    for (const client of sent) expect((await answered(client)).statuses).toEqual([401]);
    expect(admitting.faults).toEqual([]);
    admitting.seen.length = 0;
  });

  const from = (address: string) => `X-Forwarded-For: ${address}`;
  const refusedOf = async (sent: readonly RawClient[], left: number) => {
    const refused = () => sent.filter(({ statuses }) => statuses[0] === 429).length;
    await sent[0]?.until(() => refused() >= sent.length - left);
    return refused();
  };

  test.each(['/refused', '/refused_later'])(
    'a refused caller is answered before the body arrives (%s)',
    async (path) => {
      for (const length of ['Content-Length: 900000', 'Transfer-Encoding: chunked']) {
        const client = new RawClient(admitting.port);
        clients.push(client);
        await client.send(headOf(`POST ${path}`, length));
        await answered(client);
        expect(client.statuses).toEqual([401]);
      }
      expect(admitting.seen).toEqual([]);
      await expectAlive(admitting.port);
      admitting.seen.length = 0;
    },
  );

  test('the body of a request is not read while the token is checked, even if the body arrives fast', async () => {
    const large = limits.stranger_bodies_bytes_max + mebibyte;
    const sent = [];
    for (let n = 0; n < 3; n++)
      sent.push(await beginAt(admitting.port, '/waiting', large - 1, large, upload, from('a')));
    await sleep(300);
    // Uploads that wait for a token check do not use the memory of other callers at the same address.
    const stranger = await beginAt(admitting.port, '/stranger', mebibyte, mebibyte, from('a'));
    expect((await answered(stranger)).statuses).toEqual([200]);
    expect(sent.map(({ statuses }) => statuses)).toEqual([[], [], []]);
    found(true);
    for (const client of sent) await client.send('x');
    for (const client of sent) expect((await answered(client)).statuses).toEqual([200]);
  });

  test('one client address cannot use up all memory for request bodies', async () => {
    const perAddress = (limits.upload_bytes_max + limits.body_bytes_max) / mebibyte;
    const one = [];
    for (let n = 0; n < 8; n++)
      one.push(await beginAt(admitting.port, '/known', 10 * mebibyte, 11 * mebibyte, upload, from('c')));
    const left = Math.floor(perAddress / 10);
    expect(await refusedOf(one, left)).toBe(8 - left);
    const other = await beginAt(admitting.port, '/known', 4 * mebibyte, 4 * mebibyte, upload, from('d'));
    expect((await answered(other)).statuses).toEqual([200]);
    for (const client of one) client.destroy();
  });
});

test('request bodies may use a quarter of the memory, with a minimum and a maximum', () => {
  const room = bodyRoomBytes();
  expect(room).toBeGreaterThanOrEqual(limits.bodies_bytes_min);
  expect(room).toBeLessThanOrEqual(limits.bodies_bytes_max);
});

test('BodyRoom forgets an address when the last body of that address is released', () => {
  const room = new BodyRoom(16 * mebibyte);
  for (const address of ['a', 'b']) {
    const body = new BodyBuffer(mebibyte, room, () => address);
    // The engine ends a chunked body with a call that passes no bytes.
    expect(body.add(new ArrayBuffer(0), true)).toBe('kept');
    body.release();
  }
  const held = [...Object.values(room)].filter((value) => value instanceof Map);
  expect(held.map(({ size }) => size)).toEqual([0, 0]);
});

describe('buffers for large bodies are reused', () => {
  const bytes = limits.body_bytes_max;

  test('a limited number of buffers is kept for later bodies', () => {
    const room = new BodyRoom(128 * mebibyte);
    const bodies = Array.from(
      { length: limits.reused_bodies_max },
      () => new BodyBuffer(bytes, room, () => 'a', true),
    );
    const memory = (body: BodyBuffer, text: string) => {
      expect(body.add(new Uint8Array(Buffer.from(text)).buffer, true)).toBe('kept');
      const whole = body.take();
      expect(whole.toString()).toBe(text);
      return whole.buffer;
    };
    const first = memory(bodies[0] as BodyBuffer, 'first');
    expect(room.borrow()).toBeUndefined();
    const further = memory(new BodyBuffer(bytes, room, () => 'a', true), 'further');
    bodies[0]?.release();
    expect(memory(new BodyBuffer(bytes, room, () => 'a', true), 'no')).toBe(first);
    expect(further).not.toBe(first);
  });

  test('a buffer is not reused while a handler could still read it', () => {
    const room = new BodyRoom(128 * mebibyte);
    const aborted = new BodyBuffer(bytes, room, () => 'a', true);
    aborted.add(new Uint8Array(Buffer.from('secret')).buffer, true);
    const body = aborted.take();
    aborted.release(false);
    const next = new BodyBuffer(bytes, room, () => 'b', true);
    next.add(new Uint8Array(Buffer.from('other!')).buffer, true);
    expect(body.toString()).toBe('secret');
    expect(next.take().buffer).not.toBe(body.buffer);
  });

  test('no request sees the body of another request', async () => {
    const echo = await start(
      async (request) => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        request.reply(200, request.body);
      },
      { bodiesBytesMax: 256 * mebibyte },
    );
    const call = async (n: number) => {
      const sent = Buffer.alloc(limits.large_body_bytes_min + n * 7_001, `${n} `);
      const answer = await fetch(`http://127.0.0.1:${echo.port}/x`, { method: 'POST', body: sent });
      expect(Buffer.from(await answer.arrayBuffer()).equals(sent), `body ${n}`).toBe(true);
    };
    for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 60 }, (_, n) => call(n)));
    await echo.server.close();
    expect(echo.faults).toEqual([]);
  });
});

/** What request bodies may hold: all together, those of one address, and those of callers without a token. */
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

/** Sends so much of a longer body. */
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

test('uploads that nobody ends are refused before they fill the memory, and small calls go on', async () => {
  expect(limits.body_bytes_max).toBe(mebibyte);
  const open = [];
  for (let n = 0; n < 2; n++) open.push(await begin(3 * mebibyte, 4 * mebibyte, upload));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const third = await answered(await begin(3 * mebibyte, 4 * mebibyte, upload));
  expect(third.statuses).toEqual([429]);
  expect(third.text).toContain('Retry-After: 1');
  const call = await answered(await begin(mebibyte, mebibyte));
  expect(call.statuses).toEqual([200]);
  // What an answered and a broken one held is given back.
  await open[0]?.send(Buffer.alloc(mebibyte, 'x'));
  await answered(open[0] as RawClient);
  expect(open[0]?.statuses).toEqual([200]);
  open[1]?.destroy();
  await new Promise((resolve) => setTimeout(resolve, 200));
  const large = await answered(await begin(8 * mebibyte, 8 * mebibyte, upload));
  expect(large.statuses).toEqual([200]);
  expect(fixture.faults).toEqual([]);
});

describe('callers', () => {
  let admitting: Fixture;
  let found: (isKnown: boolean) => void = () => undefined;
  const waiting = new Promise<boolean>((resolve) => {
    found = resolve;
  });
  let refuseSlowly: () => void = () => undefined;
  const slowly = new Promise<boolean>((_, reject) => {
    refuseSlowly = () => reject(new ApiError('unauthorized'));
  });
  beforeAll(async () => {
    admitting = await start((request) => request.reply(200, String(request.body.length)), {
      bodiesBytesMax: 128 * mebibyte,
      // Each request says by whom it comes.
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

  test('a body without room whose caller is refused later is answered once, and is no fault', async () => {
    const sent: RawClient[] = [];
    for (let n = 0; n < 5; n++)
      sent.push(
        await beginAt(admitting.port, '/refused_slowly', 3 * mebibyte, 4 * mebibyte, upload, from('e')),
      );
    const statuses = () => sent.map(({ statuses: [first] }) => first);
    await sent[0]?.until(() => statuses().includes(429));
    refuseSlowly();
    await sent[0]?.until(() => !statuses().includes(undefined));
    expect(new Set(statuses())).toEqual(new Set([401, 429]));
    expect(admitting.faults).toEqual([]);
    admitting.seen.length = 0;
  });

  const from = (address: string) => `X-Forwarded-For: ${address}`;
  const refusedOf = async (sent: readonly RawClient[], left: number) => {
    const refused = () => sent.filter(({ statuses }) => statuses[0] === 429).length;
    await sent[0]?.until(() => refused() >= sent.length - left);
    return refused();
  };

  test.each(['/refused', '/refused_later'])('%s is answered before its body comes', async (path) => {
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
  });

  test('of which nobody knows yet whether they are good hold little', async () => {
    const one = [];
    for (let n = 0; n < 12; n++)
      one.push(await beginAt(admitting.port, '/waiting', mebibyte - 1, mebibyte, from('a')));
    const some = limits.stranger_bodies_bytes_max / mebibyte;
    expect(await refusedOf(one, some)).toBe(12 - some);
    // Others are not held up by that one, nor is a caller who is known.
    const other = await beginAt(admitting.port, '/stranger', mebibyte, mebibyte, from('b'));
    expect((await answered(other)).statuses).toEqual([200]);
    const known = await beginAt(admitting.port, '/known', mebibyte, mebibyte, from('a'));
    expect((await answered(known)).statuses).toEqual([200]);
    found(true);
    const open = one.filter(({ statuses }) => statuses.length === 0);
    for (const client of open) await client.send('x');
    for (const client of open) expect((await answered(client)).statuses).toEqual([200]);
  });

  test('at one address do not take the room of all', async () => {
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

test('the room is a quarter of the memory, within its bounds', () => {
  const room = bodyRoomBytes();
  expect(room).toBeGreaterThanOrEqual(limits.bodies_bytes_min);
  expect(room).toBeLessThanOrEqual(limits.bodies_bytes_max);
});

test('addresses whose bodies were empty are forgotten', () => {
  const room = new BodyRoom(16 * mebibyte);
  for (const address of ['a', 'b']) {
    const body = new BodyBuffer(mebibyte, room, () => address);
    // The end of a chunked body.
    expect(body.add(new ArrayBuffer(0), true)).toBe('kept');
    body.release();
  }
  const held = [...Object.values(room)].filter((value) => value instanceof Map);
  expect(held.map(({ size }) => size)).toEqual([0, 0]);
});

describe('memory of large bodies', () => {
  const bytes = limits.body_bytes_max;

  test('is used again by later bodies, up to a number of them', () => {
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

  test('is not used again while a handler may still read it', () => {
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

  test('never shows one call the body of another', async () => {
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

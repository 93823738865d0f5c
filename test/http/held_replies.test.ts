/** Tests the limit for large replies that clients read slowly. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HeldReplies } from '../../src/http/held_replies.js';
import { httpLimits } from '../../src/http/limits.js';
import { type Fixture, headOf, RawClient, start } from './fixture.js';

const { caller_held_replies_bytes_max: ofCaller, held_replies_bytes_max: ofAll } = httpLimits;
const mebibyte = 2 ** 20;

describe('HeldReplies', () => {
  const world = () => {
    const held = new HeldReplies();
    const dropped: string[] = [];
    const add = (caller: number | string, name: string, bytes: number) => {
      const reply = { bytes, drop: () => void dropped.push(name) };
      held.add(caller, reply);
      return () => held.remove(caller, reply);
    };
    return { held, dropped, add };
  };

  test('if a caller exceeds its limit, HeldReplies drops only the oldest replies to that caller', () => {
    const { held, dropped, add } = world();
    add(2, 'other', mebibyte);
    for (const name of ['a', 'b', 'c']) add(1, name, ofCaller / 2);
    expect(dropped).toEqual(['a']);
    expect(held.bytes).toBe(ofCaller + mebibyte);
  });

  test('HeldReplies drops replies of the caller with the most bytes when all replies together are above the limit', () => {
    const { held, dropped, add } = world();
    const callers = ofAll / ofCaller;
    for (let i = 0; i < callers - 1; i++) add(i, `small ${i}`, ofCaller - mebibyte);
    add('large', 'large', ofCaller);
    expect(dropped).toEqual([]);
    add('last', 'last', callers * mebibyte);
    expect(dropped).toEqual(['large']);
    expect(held.bytes).toBeLessThanOrEqual(ofAll);
  });

  test('HeldReplies counts an undroppable reply until the reply ends, and drops other replies of the same caller', () => {
    const { held, dropped, add } = world();
    expect(held.hold(1, ofCaller + 1)).toBeNull();
    const release = held.hold(1, ofCaller - mebibyte);
    add(1, 'first', mebibyte);
    add(1, 'second', mebibyte);
    expect([held.bytes, dropped]).toEqual([ofCaller, ['first']]);
    expect(held.hold(1, 1)).toBeNull();
    release?.();
    expect(held.bytes).toBe(mebibyte);
  });

  test('while the replies of all callers are at the limit, HeldReplies refuses a reply that cannot be dropped', () => {
    const { held, dropped, add } = world();
    const releases = Array.from({ length: ofAll / ofCaller }, (_, i) => held.hold(i, ofCaller));
    expect(releases).not.toContain(null);
    expect(held.hold('other', 1)).toBeNull();
    add('other', 'droppable', mebibyte);
    expect([held.bytes, dropped]).toEqual([ofAll, ['droppable']]);
    releases[0]?.();
    expect(held.hold('other', ofCaller)).not.toBeNull();
  });

  test('HeldReplies stops counting a reply that was read, and ignores a reply that was dropped', () => {
    const { held, dropped, add } = world();
    const first = add(1, 'first', ofCaller);
    add(1, 'second', ofCaller);
    first();
    expect([held.bytes, dropped]).toEqual([ofCaller, ['first']]);
  });
});

describe('over connections', () => {
  const body = Buffer.alloc(8 * mebibyte, 'x');
  const fitting = ofCaller / body.length;
  let fixture: Fixture;

  beforeAll(async () => {
    fixture = await start((request) => {
      request.calledBy = Number(request.query);
      request.replyWith(200, 'text/plain', body);
    });
  });

  afterAll(async () => {
    await fixture.server.close();
  });

  /** Sends a request, but does not read the reply. The kernel still buffers a part of the reply. */
  async function slow(caller: number, headers: readonly string[], sent = ''): Promise<RawClient> {
    const client = new RawClient(fixture.port);
    client.socket.pause();
    const begun = fixture.seen.length;
    await client.send(headOf(`POST /?${caller}`, ...headers) + sent);
    await expect.poll(() => fixture.seen.length).toBe(begun + 1);
    return client;
  }

  const isWhole = (client: RawClient) =>
    client.text.length - client.text.indexOf('\r\n\r\n') - 4 === body.length;

  test.each([
    ['a connection that stays open', ['Content-Length: 0']],
    ['a connection that the client ends', ['Content-Length: 0', 'Connection: close']],
  ] as const)('the server closes the oldest slow connection of one caller: %s', async (_, headers) => {
    const other = await slow(2, headers);
    const clients: RawClient[] = [];
    for (let i = 0; i < fitting + 2; i++) clients.push(await slow(1, headers));
    for (const client of [other, ...clients]) client.socket.resume();
    await Promise.all(clients.slice(0, 2).map((client) => client.untilClosed()));
    expect(clients.slice(0, 2).map(isWhole)).toEqual([false, false]);
    for (const client of [other, ...clients.slice(2)]) await client.until(() => isWhole(client));
    if (headers.length > 1) await Promise.all(clients.map((client) => client.untilClosed()));
    for (const client of [other, ...clients]) client.destroy();
    await expect.poll(() => fixture.server.openRequests()).toBe(0);
    expect(fixture.faults).toEqual([]);
  });

  test('if the requests had chunked bodies, the server closes the newest slow connection of a caller', async () => {
    const clients: RawClient[] = [];
    for (let i = 0; i < fitting + 1; i++) {
      clients.push(await slow(3, ['Transfer-Encoding: chunked'], '0\r\n\r\n'));
    }
    for (const client of clients) client.socket.resume();
    await Promise.all(clients.map((client) => client.untilClosed()));
    expect(clients.map(isWhole)).toEqual([...Array(fitting).fill(true), false]);
    expect(fixture.faults).toEqual([]);
  });
});

/** What all request bodies together may hold: anybody can send them, without a token. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type Fixture, headOf, RawClient, start } from './fixture.js';

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
  const client = new RawClient(fixture.port);
  clients.push(client);
  await client.send(headOf('POST /x', `Content-Length: ${length}`, ...headers));
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

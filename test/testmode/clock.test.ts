/** Tests that everything in a test server follows the clock that a test moves. */
import { expect, test } from 'vitest';
import type { Json, TestServer, World } from '../../src/testing/client.js';
import { call, onTestServer, webhookOf } from './server.js';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

let server: TestServer;
onTestServer((started) => {
  server = started;
});

const bot = (world: World, method: string, params: object = {}) =>
  call(server.url, world.bot.token, method, params);

/** Makes a call of the application API as the person. */
async function asPerson(world: World, verb: string, path: string) {
  const headers = { Authorization: `Bearer ${world.person().token}` };
  const response = await fetch(server.url + path, { method: verb, headers });
  const { result } = (await response.json()) as Json;
  return result;
}

const deadLetters = async (world: World) =>
  (await asPerson(world, 'GET', `/api/me/bots/${world.bot.id}/webhook/dead_letters`)).items;

test('a webhook that fails for 23 hours gets the update afterwards', async () => {
  const world = await server.world();
  const receiver = await webhookOf(world);
  receiver.status = 500;
  await world.person().send('hello');
  for (let hours = 0; hours < 23; hours++) await server.advance(hour);
  expect(receiver.texts.length).toBeGreaterThanOrEqual(24);
  receiver.status = 200;
  const before = receiver.texts.length;
  await server.advance(2 * minute);
  expect(receiver.texts.slice(before)).toEqual(['hello']);
  await server.advance(2 * hour);
  expect(receiver.texts.slice(before)).toEqual(['hello']);
  expect((await bot(world, 'getWebhookInfo')).body.result.pending_update_count).toBe(0);
});

test('a webhook that fails for 24 hours leaves a dead letter, which is kept for a week', async () => {
  const world = await server.world();
  const receiver = await webhookOf(world);
  receiver.status = 500;
  await world.person().send('hello');
  await server.advance(23 * hour);
  expect(await deadLetters(world)).toEqual([]);
  await server.advance(hour);
  await expect.poll(() => deadLetters(world)).toMatchObject([{ update: { message: { text: 'hello' } } }]);
  await server.advance(6 * 24 * hour);
  expect(await deadLetters(world)).toHaveLength(1);
  await server.advance(25 * hour);
  await expect.poll(() => deadLetters(world)).toEqual([]);
});

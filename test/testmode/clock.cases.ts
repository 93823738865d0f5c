/** Tests that all parts of a test server follow its movable clock. */
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

test('an update is delivered even if its webhook has failed for 23 hours', async () => {
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

test('an update becomes a dead letter after its webhook has failed for 24 hours, and is kept for a week', async () => {
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

test('after the clock is moved, new messages have the new time, and older messages are still listed', async () => {
  const world = await server.world();
  const ann = world.person();
  const sendAt = async () => (await ann.send('x')).date as number;
  const first = await sendAt();
  await server.advance(40 * 24 * hour);
  const second = await sendAt();
  expect(second - first).toBeGreaterThanOrEqual(40 * 24 * 3_600);
  expect(second - first).toBeLessThan(40 * 24 * 3_600 + 600);
  const { items } = await asPerson(world, 'GET', `/api/chats/${world.bot.id}/messages`);
  expect(items).toMatchObject([
    { message_id: 2, date: second },
    { message_id: 1, date: first },
  ]);
});

test('a draft and a callback query expire when the clock is moved past their time to live', async () => {
  const world = await server.world();
  const ann = world.person();
  await bot(world, 'sendMessageDraft', { chat_id: ann.id, draft_id: 1, text: 'so far' });
  const draft = () => asPerson(world, 'GET', `/api/chats/${world.bot.id}/draft`);
  expect(await draft()).toMatchObject({ draft: { text: 'so far' } });
  const keyboard = { inline_keyboard: [[{ text: 'Yes', callback_data: 'yes' }]] };
  const sent = await bot(world, 'sendMessage', { chat_id: ann.id, text: '?', reply_markup: keyboard });
  const press = async () => (await ann.press(sent.body.result.message_id, 'yes')).callback_query_id;
  const [early, late] = [await press(), await press()];
  const answer = async (id: string) =>
    (await bot(world, 'answerCallbackQuery', { callback_query_id: id })).status;
  await bot(world, 'sendMessageDraft', { chat_id: ann.id, draft_id: 2, text: 'so far' });
  // Moves the clock by 10 s. A draft is shown for 30 s, so 20 s remain for slow calls on a busy machine.
  await server.advance(10 * second);
  expect(await draft()).toMatchObject({ draft: {} });
  expect(await answer(early)).toBe(200);
  await server.advance(hour);
  expect(await draft()).toEqual({});
  expect(await answer(late)).toBe(400);
});

test('a ban and a long poll end when the clock is moved past their end', async () => {
  const world = await server.world({ people: ['ann', 'ben'], group: true });
  const ben = world.person('ben');
  await ben.join('group');
  const until_date = (await ben.send('hi', { chat: 'group' })).date + 3_600;
  const where = { chat_id: world.chats.group, user_id: ben.id };
  await bot(world, 'banChatMember', { ...where, until_date });
  await expect(ben.join('group')).rejects.toMatchObject({ status: 403 });
  await bot(world, 'getUpdates', { offset: -1 });
  const { result } = (await bot(world, 'getUpdates')).body;
  const offset = (result.at(-1)?.update_id ?? -1) + 1;
  // A move of the clock ends the poll only if the poll already waits. The test therefore moves the clock until the poll
  // has ended.
  let ended = false;
  const poll = bot(world, 'getUpdates', { offset, timeout: 50, allowed_updates: ['poll'] }).finally(() => {
    ended = true;
  });
  await expect.poll(async () => ended || void (await server.advance(2 * hour)), { interval: 300 }).toBe(true);
  expect((await poll).body).toEqual({ ok: true, result: [] });
  await ben.join('group');
});

test('the delay of a call follows the test clock, but the time limit of waitForCalls follows the real clock', async () => {
  const world = await server.world();
  const before = (await world.person().send('hello')).date * second;
  await world.fault('getMe', { delay_ms: 60_000 });
  const waiting = world.waitForCalls('getMe', { timeoutMs: 30_000 });
  // Moves the clock until the call is answered, because the call may not have reached its delay at the first move.
  let answered = false;
  const called = bot(world, 'getMe').finally(() => {
    answered = true;
  });
  await expect
    .poll(async () => answered || void (await server.advance(minute)), { interval: 300 })
    .toBe(true);
  expect((await called).status).toBe(200);
  const [{ at }] = await waiting;
  expect(at - before).toBeGreaterThanOrEqual(minute);
});

test('the clock can be moved only forward, and by a limited amount', async () => {
  for (const ms of [0, -1, 1.5, 367 * 24 * hour])
    await expect(server.advance(ms)).rejects.toMatchObject({ status: 400 });
});

import { Api } from 'grammy';
import type { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { packMessage, unpackMessage } from '../../src/store/core/codec.js';
import { type ChatRef, makeKeys } from '../../src/store/core/keys.js';
import { type Eviction, openEviction } from '../interface/eviction.js';
import { openAnywhere } from '../support/cluster.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { firstWithin } from '../support/times.js';

const here = { latitude: 52.52, longitude: 13.405 };
const there = { latitude: 52.53, longitude: 13.41 };
const forever = 0x7fff_ffff;
const cantEdit = "message can't be edited";
const noLive = 'there is no live location in the message to edit';
const wrongPeriod = 'wrong live location period specified';

let service: Service;
let eviction: Eviction;
let redis: Redis;
let ann: TestUser;
let bot: TestBot;
let other: TestBot;
let group: number;

onSharedService(async (running) => {
  service = running;
  eviction = await openEviction(service);
  redis = openAnywhere(service.redis);
  ann = await service.newUser('ann');
});
beforeEach(async () => {
  bot = await service.newBot(ann, 'driver');
  other = await service.newBot(ann, 'other');
  await service.openChat(ann, bot);
  group = await service.newGroup(ann, 'Team', [bot, other]);
});
afterAll(async () => {
  await eviction?.close();
  redis?.disconnect();
});

const call = (method: string, params: object, { by = bot, front = 0 } = {}) =>
  service.bot(by, method, { chat_id: ann.id, ...params }, front);
const newest = async (chat = bot.id) =>
  (await itemsOf(service.app(ann, 'GET', `/api/chats/${chat}/messages?limit=1`)))[0];
const refuses = async (answer: ReturnType<typeof call>, text: string) => {
  const { status, body } = await answer;
  expect([status, body.description]).toEqual([400, `Bad Request: ${text}`]);
};
/** Returns the id and the date of a new live location. */
const start = async (params: object = {}) =>
  resultOf(call('sendLocation', { ...here, live_period: 600, ...params }));
const move = (message_id: number, params: object = {}, more: Parameters<typeof call>[2] = {}) =>
  call('editMessageLiveLocation', { message_id, ...there, ...params }, more);
const stop = (message_id: number, params: object = {}) =>
  call('stopMessageLiveLocation', { message_id, ...params });

/** Changes the time at which a live location in Redis ends, as if time had passed. */
async function end(chat: ChatRef, messageId: number, until: number): Promise<void> {
  const key = makeKeys(64).message(chat, messageId);
  const record = unpackMessage((await redis.getBuffer(key)) as Buffer);
  const [period] = record.content.object?.live ?? [0];
  const object = { ...record.content.object, type: 'location', live: [period, until] as const };
  await redis.set(key, packMessage({ ...record, content: { object } }));
}
const chatOf = (id: number): ChatRef => (id === ann.id ? { id: bot.id, user: ann.id } : { id, user: 0 });

test.each(['a direct chat', 'a group'])('a live location in %s can be moved and stopped', async (where) => {
  const [chat_id, shown] = where === 'a group' ? [group, group] : [ann.id, bot.id];
  const more = { horizontal_accuracy: 12.5, heading: 90, proximity_alert_radius: 100 };
  const sent = await start({ chat_id, ...more });
  expect(sent.location).toEqual({ ...here, ...more, live_period: 600 });
  const { message_id } = sent;
  const { live_until, ...place } = (await newest(shown)).location;
  expect(place).toEqual(sent.location);
  expect(Math.abs(live_until - sent.date - 600)).toBeLessThan(5);
  const moved = await resultOf(move(message_id, { chat_id, heading: 180 }, { front: 1 }));
  expect(moved.location).toEqual({ ...there, heading: 180, live_period: 600 });
  expect(moved.edit_date).toBeGreaterThanOrEqual(sent.date);
  expect((await newest(shown)).location).toEqual({ ...moved.location, live_until });
  await eviction.backdate(chatOf(chat_id), message_id, sent.date);
  await expect.poll(async () => (await stop(message_id, { chat_id })).status).toBe(200);
  expect((await newest(shown)).location).toEqual({ ...there, live_until: 0 });
  await refuses(stop(message_id, { chat_id }), cantEdit);
  await refuses(move(message_id, { chat_id }), cantEdit);
});

test('stopMessageLiveLocation returns the message with an ordinary location and the new keyboard', async () => {
  const reply_markup = { inline_keyboard: [[{ text: 'Again', callback_data: 'a' }]] };
  const { message_id } = await start({ heading: 5 });
  const stopped = await resultOf(stop(message_id, { reply_markup }));
  expect(stopped).toMatchObject({ message_id, location: here, reply_markup });
  expect(stopped.location).toEqual(here);
});

test('when a live location moves, other bots and open event streams get the edited message', async () => {
  await resultOf(service.bot(other, 'getUpdates', {}));
  const { message_id } = await resultOf(
    service.app(ann, 'POST', `/api/chats/${group}/messages`, { location: here }),
  );
  await refuses(move(message_id, { chat_id: group }), cantEdit);
  const rights = { status: 'administrator', rights: { can_edit_messages: true } };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${bot.id}`, rights));
  await refuses(move(message_id, { chat_id: group }), noLive);
  const channel = await resultOf(service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' }));
  for (const member of [bot, other])
    await resultOf(
      service.app(ann, 'PUT', `/api/chats/${channel.id}/members/${member.id}`, {
        status: 'administrator',
        rights: { can_post_messages: true },
      }),
    );
  const post = await start({ chat_id: channel.id });
  await resultOf(move(post.message_id, { chat_id: channel.id }));
  const edits = async () => {
    const updates = await resultOf(service.bot(other, 'getUpdates', {}));
    return updates.flatMap(({ edited_channel_post: edit }: { edited_channel_post?: object }) => edit ?? []);
  };
  await expect
    .poll(edits)
    .toMatchObject([{ message_id: post.message_id, location: { ...there, live_period: 600 } }]);
});

test('a live location cannot be moved twice within a second, or to its current position', async () => {
  const { message_id, answer } = await firstWithin(1_000, async () => {
    const started = await start();
    await resultOf(move(started.message_id));
    return { ...started, answer: await move(started.message_id, here, { front: 1 }) };
  });
  expect(answer.body).toMatchObject({ error_code: 429, parameters: { retry_after: 1 } });
  await refuses(
    move(message_id),
    'message is not modified: specified new message content and reply markup are exactly the same as a ' +
      'current content and reply markup of the message',
  );
  expect((await newest()).location).toMatchObject(there);
});

test('an ended live location cannot be edited, even after its eviction from Redis', async () => {
  const { message_id, date } = await start({ heading: 9 });
  await eviction.backdate(chatOf(ann.id), message_id, date);
  await end(chatOf(ann.id), message_id, date - 1);
  expect((await newest()).location).toEqual({ ...here, live_until: date - 1 });
  await refuses(move(message_id), cantEdit);
  await refuses(stop(message_id), cantEdit);
  // The keyboard of an ended location can still be changed.
  const reply_markup = { inline_keyboard: [[{ text: 'Again', callback_data: 'a' }]] };
  await resultOf(call('editMessageReplyMarkup', { message_id, reply_markup }));
  await eviction.evict(new Set([String(ann.id), String(bot.id)]));
  await refuses(move(message_id), cantEdit);
  expect((await newest()).location).toEqual({ ...here, live_until: date - 1 });
});

test('an evicted live location can be moved and stopped', async () => {
  const { message_id } = await start({ live_period: forever });
  const names = new Set([String(ann.id), String(bot.id)]);
  await eviction.evict(names);
  const moved = await resultOf(move(message_id));
  expect(moved.location).toEqual({ ...there, live_period: forever });
  await eviction.evict(names);
  await expect.poll(async () => (await stop(message_id)).status).toBe(200);
  await eviction.evict(names);
  expect((await newest()).location).toEqual({ ...there, live_until: 0 });
});

test('a live location that never ends can still be moved when its message is too old for other edits', async () => {
  const { message_id, date } = await start({ live_period: forever });
  const old = date - 3 * 86_400;
  const text = await resultOf(call('sendMessage', { text: 'x' }));
  await eviction.backdate(chatOf(ann.id), text.message_id, old);
  await refuses(call('editMessageText', { message_id: text.message_id, text: 'y' }), cantEdit);
  await eviction.backdate(chatOf(ann.id), message_id, old);
  expect((await resultOf(move(message_id))).location).toEqual({ ...there, live_period: forever });
});

test('an edit can extend a live location by up to a day, and the new end must be within 90 days of the edit', async () => {
  const { message_id, date } = await start({ live_period: 60 });
  const until = (await newest()).location.live_until;
  await refuses(move(message_id, { live_period: 86_461 }), wrongPeriod);
  const moved = await resultOf(move(message_id, { live_period: 86_460 }));
  expect(moved.location.live_period).toBe(86_460);
  expect((await newest()).location.live_until).toBe(until + 86_400);
  await end(chatOf(ann.id), message_id, date + 90 * 86_400);
  await refuses(move(message_id, { ...here, live_period: 86_461 + 600 }), wrongPeriod);
  const endless = async () =>
    (await move(message_id, { ...here, live_period: forever })).body.result?.location;
  await expect.poll(endless).toEqual({ ...here, live_period: forever });
});

test('a forward and a copy of a live location are not live', async () => {
  const { message_id } = await start({ heading: 90 });
  const source = { from_chat_id: ann.id, message_id };
  const forward = await resultOf(call('forwardMessage', source));
  expect(forward.location).toEqual(here);
  await refuses(move(forward.message_id), cantEdit);
  await resultOf(call('copyMessage', source));
  const copy = await newest();
  expect(copy.location).toEqual(here);
  await refuses(move(copy.message_id), noLive);
  await resultOf(move(message_id));
  await resultOf(
    service.app(ann, 'POST', `/api/chats/${group}/forward`, {
      from_chat_id: bot.id,
      message_ids: [message_id],
    }),
  );
  expect((await newest(group)).location).toEqual(there);
});

test("a person who blocked the bot no longer sees the moves of the bot's live location", async () => {
  const { message_id } = await start({ live_period: forever });
  const before = (await newest()).location;
  const block = `/api/bots/${bot.username}/block`;
  await resultOf(service.app(ann, 'POST', block));
  const refusal = { error_code: 403, description: 'Forbidden: bot was blocked by the user' };
  const reply_markup = { inline_keyboard: [[{ text: 'Again', callback_data: 'a' }]] };
  for (const answer of [move(message_id), move(message_id, { reply_markup }), stop(message_id)])
    expect((await answer).body).toMatchObject(refusal);
  await service.app(ann, 'DELETE', block);
  expect((await newest()).location).toEqual(before);
  await resultOf(move(message_id));
});

test('only the bot that sent a live location can move and stop it', async () => {
  const { message_id } = await start({ chat_id: group });
  await refuses(move(message_id, { chat_id: group }, { by: other }), cantEdit);
  await refuses(call('stopMessageLiveLocation', { chat_id: group, message_id }, { by: other }), cantEdit);
});

test.each<[string, object, string]>([
  ['editMessageLiveLocation', { message_id: 10_000, ...there }, 'message to edit not found'],
  ['stopMessageLiveLocation', { message_id: 10_000 }, 'message to edit not found'],
  ['editMessageLiveLocation', there, 'parameter "message_id" is required'],
  ['editMessageLiveLocation', { message_id: 1, longitude: 1 }, 'parameter "latitude" is required'],
  ['editMessageLiveLocation', { message_id: 1, ...there, live_period: 59 }, wrongPeriod],
  [
    'editMessageLiveLocation',
    { message_id: 1, ...there, heading: 361 },
    'wrong live location heading specified',
  ],
  ['sendLocation', { ...here, live_period: 59 }, wrongPeriod],
  ['sendLocation', { ...here, live_period: 86_401 }, wrongPeriod],
  ['sendLocation', { ...here, live_period: -1 }, wrongPeriod],
  ['sendLocation', { ...here, live_period: 'x' }, wrongPeriod],
  ['sendLocation', { ...here, live_period: 60, heading: -1 }, 'wrong live location heading specified'],
  [
    'sendLocation',
    { ...here, live_period: 60, proximity_alert_radius: 100_001 },
    'wrong live location proximity alert radius specified',
  ],
  [
    'sendLocation',
    { ...here, live_period: 60, horizontal_accuracy: 1_501 },
    'parameter "horizontal_accuracy" must be a number from 0 to 1500',
  ],
])('%s refuses %j', async (method, params, text) => {
  await refuses(call(method, params), text);
});

test('a text, an ordinary location and a venue are not live, so they cannot be moved or stopped', async () => {
  const text = await resultOf(call('sendMessage', { text: 'x' }));
  const place = await resultOf(call('sendLocation', { ...here, live_period: 0, heading: 5 }));
  expect(place.location).toEqual(here);
  const venue = await resultOf(call('sendVenue', { ...here, title: 'T', address: 'A' }));
  for (const { message_id } of [text, place, venue]) {
    await refuses(move(message_id), noLive);
    await refuses(stop(message_id), noLive);
  }
});

test('grammY sends, moves and stops a live location', async () => {
  const api = new Api(bot.token, { apiRoot: service.fronts[1]?.url as string });
  const { message_id } = await api.sendLocation(ann.id, here.latitude, here.longitude, { live_period: 60 });
  const moved = await api.editMessageLiveLocation(ann.id, message_id, there.latitude, there.longitude);
  expect(moved).toMatchObject({ location: { ...there, live_period: 60 } });
  await expect
    .poll(() => api.stopMessageLiveLocation(ann.id, message_id).catch(() => null))
    .toMatchObject({
      location: there,
    });
});

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { type EventSource, eventually, openEvents } from '../clients/event_source.js';
import { createFront } from '../support/role_process.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { expectEnvelope } from './refused.js';

let service: Service;
const sources: EventSource[] = [];

onSharedService(async (running) => {
  service = running;
});
afterAll(async () => {
  for (const source of sources) source.cut();
});

async function place(name: string) {
  const user = await service.newUser(name);
  const bot = await service.newBot(user, `${name}_writer`);
  await service.openChat(user, bot);
  await updatesOf(bot);
  return { user, bot };
}

async function listen(user: TestUser, front = 1): Promise<EventSource> {
  const source = await openEvents(service.fronts[front]?.url ?? '', user.token);
  sources.push(source);
  return source;
}

const show = (bot: TestBot, user: TestUser, text: string, more: object = {}, front = 0) =>
  service.bot(bot, 'sendMessageDraft', { chat_id: user.id, draft_id: 7, text, ...more }, front);
const stop = (user: TestUser, bot: TestBot, draft_id: number, front = 0) =>
  service.app(user, 'POST', `/api/chats/${bot.id}/draft/stop`, { draft_id }, front);
const shownTo = (user: TestUser, bot: TestBot) => service.app(user, 'GET', `/api/chats/${bot.id}/draft`);
const drafts = (source: EventSource) =>
  source.events.filter(({ event }) => event === 'message_draft').map(({ data }) => data);

/** Returns the pending updates of a bot and confirms them. */
async function updatesOf(bot: TestBot, timeout = 0) {
  const updates = await resultOf(service.bot(bot, 'getUpdates', { timeout }));
  const last = updates.at(-1)?.update_id;
  if (last !== undefined) await resultOf(service.bot(bot, 'getUpdates', { offset: last + 1 }));
  return updates;
}

test('a draft reaches open event streams but is not a message', async () => {
  const { user, bot } = await place('ann');
  const events = await listen(user);
  expect(await resultOf(show(bot, user, ''))).toBe(true);
  await events.received(({ event }) => event === 'message_draft');
  await sleep(60);
  await resultOf(show(bot, user, '<b>Once</b>', { parse_mode: 'HTML', can_stop: true }));
  await eventually(() => expect(drafts(events)).toHaveLength(2));
  const shared = { chat_id: bot.id, from_id: bot.id, draft_id: 7, after_message_id: expect.any(Number) };
  const bold = { text: 'Once', entities: [{ type: 'bold', offset: 0, length: 4 }] };
  expect(drafts(events)).toEqual([
    { ...shared, can_stop: false, stopped: false, text: '' },
    { ...shared, can_stop: true, stopped: false, ...bold },
  ]);
  const [{ after_message_id }] = drafts(events);
  const messages = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages`));
  expect(messages.map(({ message_id }: { message_id: number }) => message_id)).toEqual([after_message_id]);
  const sent = await resultOf(
    service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'Once upon a time' }),
  );
  expect(sent.message_id).toBe(after_message_id + 1);
});

test('a browser window that opens while a draft is shown can read the draft', async () => {
  const { user, bot } = await place('bea');
  expect(await resultOf(shownTo(user, bot))).toEqual({});
  await resultOf(show(bot, user, 'Hello', { can_stop: true }));
  const shown = {
    draft_id: 7,
    after_message_id: expect.any(Number),
    can_stop: true,
    stopped: false,
    text: 'Hello',
  };
  expect(await resultOf(shownTo(user, bot))).toEqual({ draft: shown });
  await resultOf(show(bot, user, 'Good evening', { draft_id: -8 }));
  expect(await resultOf(shownTo(user, bot))).toMatchObject({ draft: { draft_id: -8, text: 'Good evening' } });
});

test('a stream sends the changes of a draft at most 20 times per second, and always sends the last text', async () => {
  const { user, bot } = await place('cem');
  const events = await listen(user);
  const began = performance.now();
  for (let i = 1; i <= 300; i++) await resultOf(show(bot, user, `word ${i}`, {}, i % 2));
  await events.received(({ data }) => data.text === 'word 300');
  const seconds = (performance.now() - began) / 1_000;
  const texts = drafts(events).map(({ text }) => Number(text.slice(5)));
  expect(texts.length).toBeLessThanOrEqual(20 * seconds + 2);
  expect(texts.length).toBeGreaterThan(2);
  expect(texts).toEqual([...texts].sort((a, b) => a - b));
});

test("when a person stops a draft, the bot gets one update, and the bot's later changes of the draft are not shown", async () => {
  const { user, bot } = await place('dan');
  const [one, other] = [await listen(user, 0), await listen(user, 1)];
  await resultOf(show(bot, user, 'I think', { can_stop: true }));
  await other.received(({ event }) => event === 'message_draft');
  for (const front of [0, 1, 0]) expect(await resultOf(stop(user, bot, 7, front))).toBe(true);
  const stopped = { chat_id: bot.id, draft_id: 7, kept: false };
  for (const each of [one, other])
    expect((await each.received(({ event }) => event === 'message_draft_stopped')).data).toEqual(stopped);
  const [update, ...rest] = await updatesOf(bot, 5);
  expect(rest).toEqual([]);
  expect(update.stopped_message_generation).toEqual({
    chat: { id: user.id, type: 'private', first_name: 'dan', username: expect.any(String) },
    draft_id: 7,
  });
  expect(await resultOf(show(bot, user, 'I think that', { can_stop: true }))).toBe(true);
  expect(await resultOf(shownTo(user, bot))).toMatchObject({
    draft: { stopped: true, can_stop: false, text: '' },
  });
  await resultOf(show(bot, user, 'Another', { draft_id: 8 }));
  await other.received(({ data }) => data.text === 'Another');
  expect(drafts(other).map(({ text }) => text)).toEqual(['I think', 'Another']);
});

test('a stopped draft stays visible if the bot requests keep_on_stop', async () => {
  const { user, bot } = await place('eva');
  const events = await listen(user);
  await resultOf(show(bot, user, 'Half', { can_stop: true, keep_on_stop: true }));
  await resultOf(stop(user, bot, 7));
  const { data } = await events.received(({ event }) => event === 'message_draft_stopped');
  expect(data.kept).toBe(true);
  expect(await resultOf(shownTo(user, bot))).toMatchObject({ draft: { stopped: true, text: 'Half' } });
});

test('invalid calls that show or stop a draft are refused', async () => {
  const { user, bot } = await place('fay');
  const stranger = await service.newUser('gil');
  const group = await service.newGroup(user, 'Team', [bot]);
  const refused = async (call: Promise<unknown>, code: number, text: string) =>
    expectEnvelope((await call) as never, code, text);
  const bad = (text: string) => `Bad Request: ${text}`;
  await refused(
    show(bot, user, 'x', { chat_id: group }),
    400,
    bad('message drafts can be sent only to private chats'),
  );
  await refused(show(bot, user, 'x', { chat_id: '' }), 400, bad('chat_id is empty'));
  await refused(show(bot, user, 'x', { chat_id: '@team' }), 400, bad('chat not found'));
  for (const draft_id of [0, 'a', 1.5])
    await refused(
      show(bot, user, 'x', { draft_id }),
      400,
      bad('parameter "draft_id" must be an integer other than 0'),
    );
  await refused(show(bot, user, 'x'.repeat(4_097)), 400, bad('message is too long'));
  await refused(show(bot, stranger, 'x'), 403, "Forbidden: bot can't initiate conversation with a user");
  await refused(stop(user, bot, 7), 404, 'Not Found: message draft not found');
  await resultOf(show(bot, user, 'x'));
  await refused(stop(user, bot, 7), 404, 'Not Found: message draft not found');
  await resultOf(show(bot, user, 'x', { can_stop: true }));
  await refused(stop(user, bot, 8), 404, 'Not Found: message draft not found');
  await refused(
    service.app(stranger, 'GET', `/api/chats/${group}/draft`),
    403,
    'Forbidden: user is not a member of the chat',
  );
  await refused(
    service.app(user, 'POST', `/api/chats/${group}/draft/stop`, { draft_id: 7 }),
    404,
    'Not Found: message draft not found',
  );
  const writers = (policy: string) =>
    resultOf(service.app(user, 'PUT', `/api/me/bots/${bot.id}/write_access`, { policy, usernames: [] }));
  const { user: guest } = await place('guest');
  await resultOf(service.app(guest, 'POST', `/api/bots/${bot.username}/start`));
  await resultOf(show(bot, guest, 'x', { can_stop: true }));
  await writers('owner');
  await refused(stop(guest, bot, 7), 403, "Forbidden: you can't write to this bot");
  await writers('all');
  await resultOf(service.app(user, 'POST', `/api/bots/${bot.username}/block`));
  await refused(show(bot, user, 'y'), 403, 'Forbidden: bot was blocked by the user');
  await refused(stop(user, bot, 7), 403, 'Forbidden: you blocked this bot');
  expect((await updatesOf(bot)).filter((each: object) => 'stopped_message_generation' in each)).toEqual([]);
});

test('drafts do not count against the rate limit of a chat', async () => {
  const limited = await createFront(service.env, { RATE_PER_CHAT: '1/60' });
  onTestFinished(async () => void (await limited.stop()));
  await limited.start();
  const user = await service.newUser('hal');
  const bot = await service.newBot(user, 'hal_writer');
  await service.openChat(user, bot);
  const say = async (method: string, text: string) => {
    const body = JSON.stringify({ chat_id: user.id, draft_id: 1, text });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${limited.url}/bot${bot.token}/${method}`, { method: 'POST', headers, body });
    return answer.status;
  };
  expect(await say('sendMessage', 'one')).toBe(200);
  expect(await say('sendMessage', 'two')).toBe(429);
  for (let i = 0; i < 20; i++) expect(await say('sendMessageDraft', `word ${i}`)).toBe(200);
});

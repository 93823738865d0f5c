import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { queueId } from '../../src/store/core/queue_ids.js';
import { type Books, keepBooks } from '../delivery/world.js';
import { ageQueue } from '../support/queues.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
let bot: TestBot;
let books: Books;
onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('rosa');
  bot = await service.newBot(owner, 'replayed');
  await service.openChat(owner, bot);
  books = await keepBooks();
});
afterAll(async () => {
  await books.close();
});

const own = (verb: string, path: string, params?: Record<string, unknown>, front = 0) =>
  service.app(owner, verb, `/api/me/bots/${bot.id}/webhook/${path}`, params, front);
const say = (text: string) => resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));
const call = (method: string, params: Record<string, unknown>) => resultOf(service.bot(bot, method, params));
const refused = (code: number, description: string) => ({
  status: code,
  body: { ok: false, error_code: code, description },
});
async function keptOf(id: number): Promise<number> {
  const database = new pg.Client(service.databaseUrl);
  await database.connect();
  const { rows } = await database.query('select count(*)::int as n from kept_updates where bot_id = $1', [
    id,
  ]);
  await database.end();
  return rows[0].n;
}
const latest = async () => (await resultOf(own('GET', 'replays', undefined, 1))).items[0];
const to = (receiver: Books) => ({ url: receiver.url, certificate: receiver.certificate });

test.each([
  ['no start', {}, 400, 'Bad Request: parameter "from_update_id" is required'],
  [
    'two starts',
    { from_update_id: 1, from_time: 1 },
    400,
    'Bad Request: parameter "from_time" must be absent if from_update_id is given',
  ],
  [
    'a negative id',
    { from_update_id: -1 },
    400,
    'Bad Request: parameter "from_update_id" must be an update_id',
  ],
  [
    'a time that is no number',
    { from_time: 'today' },
    400,
    'Bad Request: parameter "from_time" must be an integer',
  ],
  [
    'a late time',
    { from_time: 10_000_000_001 },
    400,
    'Bad Request: parameter "from_time" must be a Unix time in seconds',
  ],
  ['no webhook', { from_update_id: 1 }, 400, 'Bad Request: webhook is not set'],
  ['an unknown route', { from_update_id: 1, route: 'none' }, 404, 'Not Found: webhook route not found'],
] as const)('a replay is refused: %s', async (_, params, code, description) => {
  expect(await own('POST', 'replays', params)).toMatchObject(refused(code, description));
  expect((await resultOf(own('GET', 'replays'))).items).toEqual([]);
});

test('a replay sends delivered updates and dead letters to a new route, and keeps the dead letters', async () => {
  const broken = await keepBooks(() => 503);
  const began = Math.floor(Date.now() / 1_000);
  await call('setWebhook', to(books));
  for (const text of ['one', 'two']) await say(text);
  // Waits for three updates: the start of the chat and the two texts.
  await books.tookIn(3);
  await call('setWebhookRoute', {
    ...{ name: 'broken', ...to(broken), commands: ['lost'] },
    retry_policy: { first_delay: 600, factor: 1, max_age: 86_400 },
  });
  await say('/lost');
  // Waits until the failed delivery has a stored time for its next attempt.
  const routes = () => call('getWebhookRoutes', {});
  await expect.poll(routes).toMatchObject([{ next_try_date: expect.any(Number) }]);
  await ageQueue(service, queueId(bot.id, 1));
  await call('setWebhookRoute', { name: 'broken', ...to(broken), commands: ['lost'] });
  const dead = async () => (await resultOf(own('GET', 'dead_letters'))).items.length;
  await expect.poll(dead).toBe(1);
  const delivered = async () => (await resultOf(own('GET', 'deliveries?status=delivered'))).items.length;
  await expect.poll(delivered).toBe(3);
  const fresh = await keepBooks();
  await call('setWebhookRoute', { name: 'fresh', ...to(fresh), commands: ['none'] });
  const started = await resultOf(own('POST', 'replays', { from_time: began - 200_000, route: 'fresh' }));
  expect(started).toMatchObject({
    ...{ route: 'fresh', state: 'running', from_time: began - 200_000, end_date: null },
    ...{ delivered_count: 0, pending_count: 0, dead_letter_count: 0, last_error_message: null },
  });
  await fresh.tookIn(4);
  expect(fresh.taken.map(({ text }) => text).sort()).toEqual(['/lost', '/start', 'one', 'two']);
  for (const { headers, updateId } of fresh.taken) {
    expect(headers['x-service-replay']).toBe(String(started.replay_id));
    expect(headers['webhook-id']).toBe(`${bot.id}-${updateId}`);
  }
  expect(books.taken.map(({ headers }) => headers['x-service-replay'])).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  await expect.poll(latest).toMatchObject({
    ...{ replay_id: started.replay_id, state: 'done', delivered_count: 4, pending_count: 0 },
    ...{ reached_update_id: started.last_update_id, end_date: expect.any(Number) },
  });
  expect(await dead()).toBe(1);
  // The deliveries of a replay are listed under the route that the replay used.
  await expect
    .poll(async () => (await resultOf(own('GET', 'deliveries?status=delivered'))).items)
    .toEqual(expect.arrayContaining([expect.objectContaining({ route: 'fresh' })]));
  // Without the setting UPDATES_DAYS, no delivered update is kept.
  expect(await keptOf(bot.id)).toBe(0);
  await fresh.close();
  await broken.close();
});

test('an owner can cancel a replay, and can start another replay only after the first replay has ended', async () => {
  const broken = await keepBooks(() => 503);
  await call('setWebhookRoute', { name: 'down', ...to(broken), commands: ['none'] });
  const ask = { from_update_id: 0, route: 'down' };
  const { replay_id } = await resultOf(own('POST', 'replays', ask));
  expect(await own('POST', 'replays', ask, 1)).toMatchObject(
    refused(409, 'Conflict: a replay of this bot is running'),
  );
  await expect.poll(latest).toMatchObject({ pending_count: 4, last_error_message: expect.any(String) });
  expect(await resultOf(own('DELETE', `replays/${replay_id}`))).toMatchObject({
    ...{ replay_id, state: 'cancelled', delivered_count: 0, pending_count: 0 },
  });
  expect((await resultOf(own('DELETE', `replays/${replay_id}`))).state).toBe('cancelled');
  for (const id of ['0', '-1', '9007199254740991', 'x'])
    expect(await own('DELETE', `replays/${id}`)).toMatchObject(refused(404, 'Not Found: replay not found'));
  const next = await resultOf(own('POST', 'replays', ask));
  expect(next.replay_id).toBeGreaterThan(replay_id);
  await resultOf(own('DELETE', `replays/${next.replay_id}`));
  await broken.close();
});

test('a refused replay does not use up a replay_id', async () => {
  const broken = await keepBooks(() => 503);
  await call('setWebhookRoute', { name: 'down', ...to(broken), commands: ['none'] });
  const start = (front = 0) => own('POST', 'replays', { from_update_id: 0, route: 'down' }, front);
  const cancel = (id: number) => resultOf(own('DELETE', `replays/${id}`));
  const { replay_id } = await resultOf(start());
  for (const front of [0, 1]) expect((await start(front)).status).toBe(409);
  await cancel(replay_id);
  // Only one of several simultaneous calls starts a replay.
  const answers = await Promise.all([0, 1, 0, 1].map(start));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  expect((await latest()).replay_id).toBe(replay_id + 1);
  await cancel(replay_id + 1);
  const { replay_id: last } = await resultOf(start());
  expect(last).toBe(replay_id + 2);
  await cancel(last);
  await broken.close();
});

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { queueId } from '../../src/store/core/queue_ids.js';
import { type Books, keepBooks } from '../delivery/world.js';
import { ageQueue } from '../support/queues.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

let service: Service;
let owner: TestUser;
let bot: TestBot;
let books: Books;
onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('rita');
  bot = await service.newBot(owner, 'routed');
  await service.openChat(owner, bot);
  books = await keepBooks();
});
afterAll(async () => {
  await books.close();
});

const call = (method: string, params = {}, front = 0) => service.bot(bot, method, params, front);
const described = (description: string) => ({ status: 200, body: { ok: true, result: true, description } });
const refused = (text: string) => ({
  status: 400,
  body: { ok: false, error_code: 400, description: `Bad Request: ${text}` },
});
const receiver = () => ({ url: books.url, certificate: books.certificate });
const set = (name: string, params = {}) => call('setWebhookRoute', { name, ...receiver(), ...params });
const routes = (front = 1) =>
  resultOf(call('getWebhookRoutes', {}, front)) as Promise<Array<{ name: string }>>;
const names = async () => (await routes()).map(({ name }) => name);
const clear = async () => {
  for (const name of await names()) await call('deleteWebhookRoute', { name });
};

const commandsError =
  'commands must have 1 to 100 commands of 1 to 32 lowercase letters, digits and underscores';
const policyError =
  'retry_policy must have first_delay from 1 to 3600, factor from 1 to 10 and max_age from 60 to 86400';
const policy = { first_delay: 2, factor: 1.5, max_age: 600 };

describe('a refused setWebhookRoute does not change the routes', () => {
  test.each([
    ['no name', { name: '' }, 'route name must have 1 to 32 letters, digits, hyphens and underscores'],
    [
      'a space in the name',
      { name: 'a b' },
      'route name must have 1 to 32 letters, digits, hyphens and underscores',
    ],
    [
      'a long name',
      { name: 'x'.repeat(33) },
      'route name must have 1 to 32 letters, digits, hyphens and underscores',
    ],
    ['no HTTPS', { url: 'http://example.com/' }, 'bad webhook: An HTTPS URL must be provided for webhook'],
    ['a private address', { url: 'https://10.0.0.1/' }, 'bad webhook: IP address 10.0.0.1 is reserved'],
    ['a forbidden port', { url: 'https://127.0.0.1:6379/' }, 'bad webhook: port 6379 is not allowed'],
    ['a bad secret', { secret_token: 'a b' }, 'secret token contains unallowed characters'],
    ['no certificate', { certificate: 'hello' }, 'bad webhook: certificate is not a valid PEM certificate'],
    ['too many connections', { max_connections: 101 }, 'max_connections must be between 1 and 100'],
    ['no chats', { chat_ids: [] }, 'chat_ids must have 1 to 100 ids of chats'],
    ['the chat id 0', { chat_ids: [5, 0] }, 'chat_ids must have 1 to 100 ids of chats'],
    ['a username', { chat_ids: ['@channel'] }, 'chat_ids must have 1 to 100 ids of chats'],
    [
      'too many chats',
      { chat_ids: Array.from({ length: 101 }, (_, i) => i + 1) },
      'chat_ids must have 1 to 100 ids of chats',
    ],
    ['0 percent', { percent: 0 }, 'percent must be from 1 to 100'],
    ['101 percent', { percent: 101 }, 'percent must be from 1 to 100'],
    ['chats and a share', { percent: 10, chat_ids: [1] }, 'chat_ids and percent cannot be used together'],
    ['no commands', { commands: [] }, commandsError],
    ['a command in upper case', { commands: ['Start'] }, commandsError],
    ['an empty command', { commands: ['/'] }, commandsError],
    ['a long command', { commands: ['x'.repeat(33)] }, commandsError],
    ['a command with a username', { commands: ['start@routed_bot'] }, commandsError],
    ['a number as command', { commands: [7] }, commandsError],
    ['too many commands', { commands: Array.from({ length: 101 }, (_, i) => `c${i}`) }, commandsError],
    ['place 0', { position: 0 }, 'position must be from 1 to 10'],
    ['place 11', { position: 11 }, 'position must be from 1 to 10'],
    ['a short delay', { retry_policy: { ...policy, first_delay: 0 } }, policyError],
    ['a small factor', { retry_policy: { ...policy, factor: 0.9 } }, policyError],
    ['a high age', { retry_policy: { ...policy, max_age: 86_401 } }, policyError],
    ['a policy without age', { retry_policy: { first_delay: 1, factor: 2 } }, policyError],
  ])('setWebhookRoute refuses: %s', async (_, params, text) => {
    await resultOf(set('kept', { percent: 7 }));
    expect(await set('kept', params)).toMatchObject(refused(text));
    expect(await routes()).toMatchObject([{ name: 'kept', url: books.url, percent: 7 }]);
    await clear();
  });
});

test('setWebhook refuses a bad retry policy, and getWebhookInfo shows a valid retry policy', async () => {
  const bad = { ...receiver(), retry_policy: { ...policy, max_age: 59 } };
  expect(await call('setWebhook', bad)).toMatchObject(refused(policyError));
  await resultOf(call('setWebhook', { ...receiver(), retry_policy: JSON.stringify(policy) }));
  expect(await resultOf(call('getWebhookInfo'))).toMatchObject({ retry_policy: policy });
  expect(await call('setWebhook', receiver())).toMatchObject(described('Webhook was set'));
  expect(await resultOf(call('getWebhookInfo'))).not.toHaveProperty('retry_policy');
  await call('deleteWebhook');
});

test('getWebhookRoutes shows the routes in order, with their settings', async () => {
  expect(await set('a')).toMatchObject(described('Webhook route was set'));
  const more = { retry_policy: policy, chat_ids: [-5, owner.id], allowed_updates: ['message'] };
  await resultOf(set('b', { ...more, max_connections: 3, secret_token: 'quiet' }));
  await resultOf(set('c', { percent: 25, position: 1 }));
  const common = {
    url: books.url,
    has_custom_certificate: true,
    pending_update_count: 0,
    dead_letter_count: 0,
    last_error_date: null,
    last_error_message: null,
    next_try_date: null,
    max_connections: 40,
    ip_address: '127.0.0.1',
  };
  const second = { ...more, chat_ids: expect.arrayContaining([-5, owner.id]), max_connections: 3 };
  expect(await routes()).toEqual([
    { ...common, name: 'c', percent: 25 },
    { ...common, name: 'a' },
    { ...common, name: 'b', ...second },
  ]);
  await resultOf(set('b', { position: 2 }));
  expect(await names()).toEqual(['c', 'b', 'a']);
  expect((await routes())[1]).toEqual({ ...common, name: 'b', allowed_updates: ['message'] });
  expect(await call('deleteWebhookRoute', { name: 'b' })).toMatchObject(
    described('Webhook route was deleted'),
  );
  expect(await call('deleteWebhookRoute', { name: 'b' })).toMatchObject(
    described('Webhook route is already deleted'),
  );
  await clear();
});

test('a route with commands gets only updates with these commands, and getWebhookRoutes and the owner see the commands', async () => {
  await resultOf(set('orders', { commands: ['/pay', 'order', 'pay'], percent: 100 }));
  expect(await routes()).toMatchObject([{ name: 'orders', commands: ['pay', 'order'] }]);
  expect((await resultOf(own('GET', 'routes'))).items).toEqual(await routes());
  const before = books.taken.length;
  const { username } = bot;
  for (const text of ['/pay', '/help', `/Order@${username} 5`, 'pay', `/pay@other_bot`]) await say(text);
  await expect
    .poll(() => books.taken.slice(before).map(({ text }) => text))
    .toEqual(['/pay', `/Order@${username} 5`]);
  const polled = (await resultOf(call('getUpdates'))) as Array<{
    update_id: number;
    message: { text: string };
  }>;
  expect(polled.map(({ message }) => message.text).slice(-3)).toEqual(['/help', 'pay', '/pay@other_bot']);
  await resultOf(call('getUpdates', { offset: (polled.at(-1)?.update_id as number) + 1 }));
  await resultOf(set('orders'));
  expect((await routes())[0]).not.toHaveProperty('commands');
  await clear();
});

test('a bot has at most ten routes', async () => {
  for (let n = 0; n < 10; n++) await resultOf(set(`r${n}`));
  expect(await set('r10')).toMatchObject(refused('too many webhook routes'));
  await resultOf(set('r9', { percent: 5 }));
  await clear();
});

test('the routes of a bot take at most 16 KiB in total', async () => {
  const long = { url: `${books.url}?${'x'.repeat(1_900)}`, secret_token: 's'.repeat(256) };
  const answers = [];
  for (let n = 0; n < 10; n++) answers.push(await set(`r${n}`, long));
  expect(answers[3]).toMatchObject(described('Webhook route was set'));
  expect(answers[9]).toMatchObject(refused('webhook routes are too large'));
  expect((await names()).length).toBe(answers.filter(({ status }) => status === 200).length);
  await clear();
});

test('setting routes affects neither polls nor the result of getWebhookInfo', async () => {
  const say = (text: string) =>
    resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));
  await resultOf(set('edits', { allowed_updates: ['edited_message'] }));
  expect(await resultOf(call('getWebhookInfo'))).toMatchObject({ url: '' });
  await say('polled');
  const [update] = (await resultOf(call('getUpdates', { allowed_updates: ['message'] }))) as Array<{
    message: { text: string };
  }>;
  expect(update?.message.text).toBe('polled');
  expect(await resultOf(call('getWebhookInfo'))).toMatchObject({
    allowed_updates: ['message'],
    pending_update_count: 1,
  });
  await resultOf(set('all'));
  const before = books.taken.length;
  await say('pushed');
  await expect.poll(() => books.taken.slice(before).map(({ text }) => text)).toEqual(['pushed']);
  expect(await resultOf(call('deleteWebhook', { drop_pending_updates: true }))).toBe(true);
  expect(await names()).toEqual(['edits', 'all']);
  expect(await resultOf(call('getWebhookInfo'))).toMatchObject({ pending_update_count: 0 });
  await clear();
});

const own = (verb: string, path: string, params?: object) =>
  service.app(owner, verb, `/api/me/bots/${bot.id}/webhook/${path}`, params);
const say = (text: string) => resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));

test('an owner sees the routes with their pending updates, last error and next retry', async () => {
  let status = 503;
  const failing = await keepBooks(() => status);
  await resultOf(
    call('setWebhookRoute', { name: 'failing', url: failing.url, certificate: failing.certificate }),
  );
  await resultOf(set('fine', { allowed_updates: ['poll'] }));
  await say('stuck');
  const listed = async () => (await resultOf(own('GET', 'routes'))).items;
  const now = Math.floor(Date.now() / 1_000);
  // Waits for the first retry, which the worker makes immediately.
  await expect.poll(() => failing.arrivals.length).toBeGreaterThan(1);
  await expect.poll(listed).toMatchObject([
    {
      ...{ name: 'failing', pending_update_count: 1, last_error_date: expect.any(Number) },
      last_error_message: 'Wrong response from the webhook: 503 Service Unavailable',
      next_try_date: expect.any(Number),
    },
    { name: 'fine', pending_update_count: 0, last_error_message: null, next_try_date: null },
  ]);
  const [shown] = await listed();
  expect(shown.next_try_date).toBeGreaterThanOrEqual(now);
  expect(shown.next_try_date).toBeLessThan(now + 200);
  expect(await listed()).toEqual(await routes());
  status = 200;
  await failing.tookIn(1);
  await expect
    .poll(async () => (await listed())[0])
    .toMatchObject({ pending_update_count: 0, next_try_date: null });
  await clear();
  await failing.close();
});

test('an owner lists, replays and discards the dead letters of one route', async ({ onTestFinished }) => {
  // Uses a new bot, because the first route of a new bot gets slot 1.
  const former = bot;
  onTestFinished(() => {
    bot = former;
  });
  bot = await service.newBot(owner, 'lettered');
  await service.openChat(owner, bot);
  const later = { retry_policy: { first_delay: 600, factor: 1, max_age: 86_400 } };
  let status = 503;
  const slow = await keepBooks(() => status);
  const to = { url: slow.url, certificate: slow.certificate };
  await resultOf(call('setWebhookRoute', { name: 'one', ...to, ...later }));
  await say('of one');
  await expect.poll(routes).toMatchObject([{ next_try_date: expect.any(Number) }]);
  await ageQueue(service, queueId(bot.id, 1));
  await resultOf(call('setWebhookRoute', { name: 'one', ...to }));
  const letters = async (query = '') =>
    (await resultOf(own('GET', `dead_letters${query}`))).items.map(
      ({ route, update }: { route?: string; update: { message: { text: string } } }) => [
        route,
        update.message.text,
      ],
    );
  await expect.poll(() => letters()).toEqual([['one', 'of one']]);
  await resultOf(set('two', { allowed_updates: ['edited_message'] }));
  expect(await letters('?route=one')).toEqual([['one', 'of one']]);
  expect(await letters('?route=two')).toEqual([]);
  expect(await resultOf(own('DELETE', 'dead_letters?route=two'))).toEqual({ discarded: 0 });
  const replay = { dead_letters: true };
  expect(await resultOf(own('POST', 'replay', { ...replay, route: 'two' }))).toEqual({ queued: 0 });
  status = 200;
  expect(await resultOf(own('POST', 'replay', { ...replay, route: 'one' }))).toEqual({ queued: 1 });
  await slow.tookIn(1);
  expect(await letters()).toEqual([]);
  // The replayed update is now listed as a delivery of route `one`. Only a replay over route `one` finds this update.
  const delivered = async () => (await resultOf(own('GET', 'deliveries?status=delivered'))).items;
  await expect.poll(async () => (await delivered()).length).toBe(1);
  const [{ update_id }] = await delivered();
  const range = { from_update_id: update_id, to_update_id: update_id };
  expect(await resultOf(own('POST', 'replay', { ...range, route: 'two' }))).toEqual({ queued: 0 });
  await expect
    .poll(async () => (await resultOf(own('POST', 'replay', { ...range, route: 'one' }))).queued)
    .toBe(1);
  await expect.poll(() => slow.taken.length).toBeGreaterThan(1);
  await clear();
  await slow.close();
});

test('the list of deliveries and the command `petrel webhooks show` name the route of each delivery', async ({
  onTestFinished,
}) => {
  const former = bot;
  onTestFinished(() => {
    bot = former;
  });
  bot = await service.newBot(owner, 'named');
  let status = 503;
  const slow = await keepBooks(() => status);
  onTestFinished(() => slow.close());
  const to = { url: slow.url, certificate: slow.certificate };
  await resultOf(call('setWebhookRoute', { name: 'orders', ...to, allowed_updates: ['message'] }));
  await resultOf(call('setWebhook', receiver()));
  await service.openChat(owner, bot);
  await expect.poll(() => slow.arrivals.length).toBeGreaterThan(1);
  status = 200;
  await slow.tookIn(1);
  const { message_id } = await say('of the webhook');
  await slow.tookIn(2);
  const edit = `/api/chats/${bot.id}/messages/${message_id}`;
  await resultOf(service.app(owner, 'PATCH', edit, { text: 'edited' }));
  const listed = async () =>
    (await resultOf(own('GET', 'deliveries'))).items.map(
      ({ route, delivered }: { route?: string; delivered: boolean }) => [route, delivered],
    );
  await expect.poll(listed).toEqual(
    expect.arrayContaining([
      ['orders', true],
      ['orders', false],
      [undefined, true],
    ]),
  );
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [main, 'webhooks', 'show', `${bot.id}`], {
    env: { ...service.env, PATH: process.env.PATH },
  });
  expect(stdout).toMatch(/^route {8}orders {2}https:\/\/127\.0\.0\.1:\d+ {2}0 pending/m);
  expect(stdout).toMatch(/ {2}delivered with 200 {2}\d+ ms, route orders$/m);
  expect(stdout).toMatch(/ {2}delivered with 200 {2}\d+ ms$/m);
  expect(stdout).toMatch(/ 503 Service Unavailable {2}\d+ ms, route orders, next /m);
  // The name of a deleted route is no longer known.
  await call('deleteWebhookRoute', { name: 'orders' });
  expect(new Set((await listed()).map(([route]: [string?]) => route))).toEqual(new Set([undefined]));
}, 120_000);

test.each([
  ['GET', 'dead_letters?route=none', undefined],
  ['DELETE', 'dead_letters?route=none', undefined],
  ['POST', 'replay', { dead_letters: true, route: 'none' }],
])('%s %s refuses the name of an unknown route', async (verb, path, params) => {
  expect(await own(verb, path, params)).toMatchObject({
    status: 404,
    body: { ok: false, error_code: 404, description: 'Not Found: webhook route not found' },
  });
  const bad = params ? { ...params, route: 'a b' } : undefined;
  expect(await own(verb, path.replace('none', 'a%20b'), bad)).toMatchObject(
    refused('route name must have 1 to 32 letters, digits, hyphens and underscores'),
  );
});

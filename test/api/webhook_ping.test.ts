import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { longTest } from '../support/tiers.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
const secrets = ['told-to-nobody', 'path-of-a-secret'];
let service: Service;
let owner: TestUser;
let bot: TestBot;
let receiver: Receiver;
let received: Array<{ path: string | undefined; update: Record<string, unknown> }> = [];
let status = 200;
/** The receiver does not answer until this promise resolves. */
let held = Promise.resolve();

onSharedService(async (running) => {
  service = running;
  receiver = await startReceiver(certificate, async ({ url, headers }, response, body) => {
    received.push({ path: url, update: JSON.parse(String(body)) });
    await held;
    // Repeats the secrets in the answer, like a receiver in debug mode.
    response.writeHead(status, { 'x-path': url }).end(JSON.stringify({ url, headers }));
  });
});
afterAll(async () => {
  await receiver.close();
});
beforeEach(async () => {
  received = [];
  status = 200;
  // Uses a new owner for each test, because the number of pings per owner is limited.
  owner = await service.newUser('pia');
  bot = await service.newBot(owner, 'pinged');
});

const to = (path: string) => ({
  url: `https://127.0.0.1:${receiver.port}/${path}`,
  ...{ certificate: certificate.cert, secret_token: 'told-to-nobody' },
});
const hook = (path = 'path-of-a-secret') => resultOf(service.bot(bot, 'setWebhook', to(path)));
const own = (verb: string, path: string, params?: object, front = 0) =>
  service.app(owner, verb, `/api/me/bots/${bot.id}/webhook/${path}`, params, front);
const ping = (params: object = {}, front = 0) => own('POST', 'ping', params, front);

test('an owner pings a webhook and sees the exchange with masked secrets', async () => {
  await hook();
  const shown = await resultOf(ping());
  expect(received).toEqual([
    {
      path: '/path-of-a-secret',
      update: { update_id: 0, ping: { bot_id: bot.id, date: expect.any(Number) } },
    },
  ]);
  expect(shown).toMatchObject({ delivered: true, status: 200, error: null });
  expect(shown.answer.headers).toContainEqual({ name: 'x-path', value: '*'.repeat(17) });
  expect(shown.answer.body).toMatch(/^\{"url":"\*{17}","headers":\{/);
  const { secret } = await resultOf(own('GET', 'secret'));
  const logs = service.fronts.map((front) => front.log()).join('');
  for (const hidden of [...secrets, secret]) {
    expect(JSON.stringify(shown)).not.toContain(hidden);
    expect(logs).not.toContain(hidden);
  }
});

test('a ping of a failing webhook changes neither its state nor its deliveries', async () => {
  await service.openChat(owner, bot);
  await resultOf(service.bot(bot, 'setWebhook', { url: '', drop_pending_updates: true }));
  await hook();
  status = 503;
  expect(await resultOf(ping())).toMatchObject({
    ...{ delivered: false, status: 503 },
    error: 'Wrong response from the webhook: 503 Service Unavailable',
  });
  expect(received).toHaveLength(1);
  expect(await resultOf(service.bot(bot, 'getWebhookInfo'))).toMatchObject({
    ...{ pending_update_count: 0, last_error_date: null, last_error_message: null },
  });
  // The ping does not delay the next delivery, and is not in the list of deliveries.
  status = 200;
  await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'one' }));
  const listed = async () => resultOf(own('GET', 'deliveries'));
  await expect.poll(async () => (await listed()).items).toMatchObject([{ delivered: true, tries: 1 }]);
  expect((await listed()).counts).toEqual({ delivered: 1, failed: 0, dead: 0, unkept: 0 });
});

test('an owner pings a route of a bot that polls', async () => {
  await resultOf(service.bot(bot, 'setWebhookRoute', { name: 'canary', ...to('canary') }));
  expect(await resultOf(ping({ route: 'canary' }))).toMatchObject({ delivered: true, status: 200 });
  expect(received.map(({ path }) => path)).toEqual(['/canary']);
  expect(await ping()).toMatchObject({
    ...{ status: 400, body: { description: 'Bad Request: webhook is not set' } },
  });
  expect(await ping({ route: 'none' })).toMatchObject({
    ...{ status: 404, body: { description: 'Not Found: webhook route not found' } },
  });
  expect(await ping({ route: 'a b' })).toMatchObject({ status: 400 });
  expect(received).toHaveLength(1);
});

test('an owner may send six pings per minute in total, over all bots and all fronts', async () => {
  await hook();
  const first = bot;
  bot = await service.newBot(owner, 'second');
  await hook();
  const second = bot;
  const began = performance.now();
  let answer = await ping();
  for (let n = 1; answer.status === 200 && n < 30; n++) {
    bot = n % 2 ? first : second;
    answer = await ping({}, n % 2);
  }
  // One more ping is allowed every ten seconds.
  const more = Math.floor((performance.now() - began) / 10_000);
  expect(received.length).toBeGreaterThanOrEqual(6);
  expect(received.length).toBeLessThanOrEqual(6 + more);
  const { retry_after } = answer.body.parameters;
  expect(retry_after).toBeGreaterThan(0);
  expect(retry_after).toBeLessThanOrEqual(10);
  expect(answer).toMatchObject({
    ...{ status: 429, body: { description: `Too Many Requests: retry after ${retry_after}` } },
  });
});

test('an owner has at most one ping in flight on a front, for all bots together', async () => {
  await hook();
  let release = () => {};
  held = new Promise((resolve) => {
    release = resolve;
  });
  try {
    const running = ping();
    await expect.poll(() => received.length).toBe(1);
    bot = await service.newBot(owner, 'second');
    await hook();
    expect(await ping()).toMatchObject({
      ...{ status: 429, body: { description: 'Too Many Requests: retry after 1' } },
    });
    release();
    expect((await running).status).toBe(200);
    expect(await resultOf(ping())).toMatchObject({ delivered: true });
    expect(received).toHaveLength(2);
  } finally {
    release();
    held = Promise.resolve();
  }
});

test('a suspended bot is not pinged', async () => {
  await hook();
  const suspension = `/api/admin/bots/${bot.id}/suspension`;
  const admin = { token: service.adminToken };
  await resultOf(service.app(admin, 'POST', suspension));
  expect(await ping()).toMatchObject({
    status: 403,
    body: { description: 'Forbidden: deliveries to the webhooks of the bot are paused' },
  });
  await resultOf(service.app(admin, 'DELETE', suspension));
  expect(await resultOf(ping())).toMatchObject({ delivered: true });
});

longTest(
  '`petrel webhooks ping` shows the result of a ping, without the text of the receiver',
  async () => {
    const run = promisify(execFile);
    const petrel = (...args: string[]) =>
      run(process.execPath, [main, 'webhooks', 'ping', ...args], {
        env: { ...service.env, PATH: process.env.PATH },
      });
    await hook();
    await resultOf(service.bot(bot, 'setWebhookRoute', { name: 'canary', ...to('canary') }));
    const { stdout } = await petrel(`@${bot.username}`, '--route', 'canary');
    expect(stdout).toMatch(
      /^delivered with 200\nduration \d+ ms, resolve \d+ ms, connect \d+ ms, tls \d+ ms, answer \d+ ms\n$/,
    );
    expect(received.map(({ path }) => path)).toEqual(['/canary']);
    status = 500;
    await expect(petrel(`${bot.id}`)).rejects.toMatchObject({
      ...{ code: 1, stdout: expect.stringMatching(/^Wrong response from the webhook: 500 .*\nduration /) },
    });
  },
  120_000,
);

/** Tests the page on which an owner sees and handles a failing webhook, with a real receiver. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import { ageQueue } from '../support/queues.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { resultOf, type TestBot, type TestUser } from '../support/service.js';
import { separateTests, startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
let world: World;
let owner: TestUser;
let receiver: Receiver;
let received: string[] = [];
let onPing: (ping: unknown) => void = () => {};
/** The status, body and headers with which the receiver answers next. */
let answer: readonly [status: number, body: string, headers?: Record<string, string>] = [200, ''];

beforeAll(async () => {
  world = await startWorld({}, { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
  owner = await world.service.newUser('olga');
  receiver = await startReceiver(certificate, (_, response, body) => {
    const { message, ping } = JSON.parse(String(body));
    if (ping) onPing(ping);
    else received.push(message.text);
    const [status, text, headers] = answer;
    response.writeHead(status, headers).end(text);
  });
});
separateTests(() => world);
afterAll(async () => {
  await world?.stop();
  await receiver?.close();
});

async function begin() {
  const { service } = world;
  const bot = await service.newBot(owner, 'hooked');
  await service.openChat(owner, bot);
  await resultOf(service.bot(bot, 'setWebhook', { url: '', drop_pending_updates: true }));
  received = [];
  return {
    bot,
    say: (text: string) => resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text })),
    page: await world.open(owner, `#/bots/${bot.id}/webhook`),
  };
}

const hook = (bot: TestBot) =>
  resultOf(
    world.service.bot(bot, 'setWebhook', {
      url: `https://127.0.0.1:${receiver.port}/hook`,
      certificate: certificate.cert,
    }),
  );

test('the page of a webhook shows each delivery attempt with the answer from the receiver', async () => {
  const { bot, say, page } = await begin();
  await page.getByText('Nothing has been sent yet.').waitFor();
  answer = [503, '{"error":"<b>away</b>"}', { 'retry-after': '600' }];
  await hook(bot);
  await say('one');
  await expect.poll(() => received, { timeout: 20_000 }).toEqual(['one']);
  const refreshed = async (what: ReturnType<typeof page.locator>) =>
    expect
      .poll(
        async () => {
          await page.getByRole('button', { name: 'Refresh' }).click();
          return what.count();
        },
        { timeout: 20_000, interval: 500 },
      )
      .toBeGreaterThan(0);
  await refreshed(page.locator('.attempts').getByText(/Wrong response from the webhook: 503/));
  const row = page.locator('.attempts li').last();
  await row.locator('summary').click();
  await row.getByText('{"error":"<b>away</b>"}').waitFor();
  await row.getByText(/Next attempt: /).waitFor();
  const facts = page.locator('.facts');
  await facts.getByText(/503/).waitFor();
  await facts.getByText(`https://127.0.0.1:${receiver.port}/hook`).waitFor();
  expect(await facts.locator('dd').nth(2).textContent()).toBe('1');
  answer = [200, '{"fine":true}'];
  // Sets the webhook again, which causes an attempt immediately.
  await resultOf(world.service.bot(bot, 'deleteWebhook'));
  await hook(bot);
  await refreshed(page.locator('.attempts .dot.good'));
  await page.locator('.attempts li').first().getByText('Delivered').waitFor();
  expect(received).toEqual(['one', 'one']);
  expect(world.faults()).toEqual([]);
});

test('an owner delivers dead letters again or discards them', async () => {
  const { bot, say, page } = await begin();
  answer = [200, ''];
  const die = async (...texts: string[]) => {
    await resultOf(world.service.bot(bot, 'deleteWebhook'));
    for (const text of texts) await say(text);
    await ageQueue(world.service, bot.id);
    await hook(bot);
    const letters = `/api/me/bots/${bot.id}/webhook/dead_letters`;
    await expect
      .poll(async () => (await resultOf(world.service.app(owner, 'GET', letters))).items.length, {
        timeout: 20_000,
      })
      .toBe(texts.length);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await rows.nth(texts.length - 1).waitFor();
  };
  const rows = page.locator('.attempts').first().locator('li');
  await page.getByText('No dead letters.').waitFor();
  await die('one', 'two', 'three');
  expect(received).toEqual([]);
  expect(await rows.count()).toBe(3);
  await rows.nth(1).getByText('The update was older than 24 hours').waitFor();
  await rows.nth(1).locator('summary').click();
  await rows.nth(1).getByText('"text": "two"').waitFor();
  await rows.nth(1).getByRole('button', { name: 'Deliver again' }).click();
  await page.getByText('Queued again: 1').waitFor();
  await expect.poll(() => received, { timeout: 20_000 }).toEqual(['two']);
  await expect.poll(() => rows.count()).toBe(2);
  await page.getByRole('button', { name: 'Deliver all again' }).click();
  await page.getByText('Queued again: 2').waitFor();
  await expect.poll(() => received, { timeout: 20_000 }).toEqual(['two', 'one', 'three']);
  await page.getByText('No dead letters.').waitFor();
  await die('four', 'five');
  await page.getByRole('button', { name: 'Discard all' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('These updates will never be delivered.').waitFor();
  await dialog.getByRole('button', { name: 'Discard all' }).click();
  await page.getByText('Discarded: 2').waitFor();
  await page.getByText('No dead letters.').waitFor();
  expect(received).toEqual(['two', 'one', 'three']);
  expect(world.faults()).toEqual([]);
});

test('the page of a webhook shows the routes with their state', async () => {
  const { bot, say, page } = await begin();
  answer = [503, '', { 'retry-after': '600' }];
  const url = `https://127.0.0.1:${receiver.port}/hook`;
  const set = (params: object) =>
    resultOf(world.service.bot(bot, 'setWebhookRoute', { url, certificate: certificate.cert, ...params }));
  await set({ name: 'payments', allowed_updates: ['callback_query'], percent: 5 });
  await set({ name: 'orders', commands: ['pay', 'order'] });
  await set({ name: 'support', chat_ids: [owner.id] });
  await say('stuck');
  await expect.poll(() => received.length, { timeout: 20_000 }).toBeGreaterThan(0);
  const routes = page.locator('.routes section');
  const facts = async () => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    return (await routes.allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
  };
  await expect
    .poll(facts, { timeout: 20_000, interval: 500 })
    .toEqual([
      `payments Address ${url} Share of chats 5 % Kinds of updates callback_query Pending updates 0 Max connections 40 Last error none Send a test`,
      `orders Address ${url} Commands /pay, /order Pending updates 0 Max connections 40 Last error none Send a test`,
      expect.stringMatching(
        /^support Address \S+ Listed chats 1 Pending updates 1 Max connections 40 Last error Wrong response from the webhook: 503 .* Next attempt .* Send a test$/,
      ),
    ]);
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  expect(world.faults()).toEqual([]);
});

test('an owner replays stored updates into a route, sees the progress, and cancels a replay', async () => {
  const { bot, say, page } = await begin();
  answer = [200, ''];
  await hook(bot);
  await say('old');
  const path = `/api/me/bots/${bot.id}/webhook/deliveries?status=delivered`;
  await expect
    .poll(async () => (await resultOf(world.service.app(owner, 'GET', path))).items.length, {
      timeout: 20_000,
    })
    .toBe(1);
  const to = { url: `https://127.0.0.1:${receiver.port}/later`, certificate: certificate.cert };
  await resultOf(world.service.bot(bot, 'setWebhookRoute', { name: 'later', commands: ['none'], ...to }));
  await page.getByRole('button', { name: 'Refresh' }).click();
  const card = page.locator('.replays');
  await card.getByLabel('To').selectOption('later');
  await card.getByRole('button', { name: 'Start a replay' }).click();
  await card.getByText('later · done').waitFor();
  expect(received).toEqual(['old', 'old']);
  expect((await card.locator('.facts').innerText()).replace(/\s+/g, ' ')).toMatch(
    /^From .+ Up to update \d+ \/ \d+ Delivered 1 Pending updates 0 Dead letters 0$/,
  );
  answer = [503, '', { 'retry-after': '600' }];
  await card.getByRole('button', { name: 'Start a replay' }).click();
  await card.getByText('webhook: 503').waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await card.getByRole('button', { name: 'Cancel' }).click();
  await card.getByText('later · cancelled').waitFor();
  expect(await card.getByRole('button', { name: 'Start a replay' }).isEnabled()).toBe(true);
  expect(world.faults()).toEqual([]);
});

test('an owner pings a webhook and a route, and sees the request and the answer of each ping', async () => {
  const { bot, page } = await begin();
  answer = [200, '{"fine":"<b>yes</b>"}', { 'x-version': '7' }];
  const pings: unknown[] = [];
  onPing = (ping) => pings.push(ping);
  await hook(bot);
  const url = `https://127.0.0.1:${receiver.port}/route`;
  await resultOf(
    world.service.bot(bot, 'setWebhookRoute', { name: 'canary', url, certificate: certificate.cert }),
  );
  await page.getByRole('button', { name: 'Refresh' }).click();
  const own = page.locator('.card').first();
  await own.getByRole('button', { name: 'Send a test' }).click();
  await own.getByRole('status').getByText('Delivered').waitFor();
  expect(await own.getByRole('status').textContent()).toMatch(
    /^Delivered 200\d+ ms · look-up \d+ ms · connect \d+ ms · TLS \d+ ms · answer \d+ ms$/,
  );
  const [shownAnswer, shownRequest] = await own.locator('pre').allTextContents();
  expect(shownAnswer).toContain('x-version: 7\n');
  expect(shownAnswer).toMatch(/\n\n\{"fine":"<b>yes<\/b>"\}$/);
  expect(shownRequest).toMatch(/\nX-Service-Signature: \(hidden\)\n/);
  expect(shownRequest).toContain(`\n\n{"update_id":0,"ping":{"bot_id":${bot.id},`);
  answer = [503, '', {}];
  const route = page.locator('.routes section');
  await route.getByRole('button', { name: 'Send a test' }).click();
  await route.getByRole('status').getByText('Wrong response from the webhook: 503').waitFor();
  expect(pings).toEqual(Array(2).fill({ bot_id: bot.id, date: expect.any(Number) }));
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  // The page explains why the test was refused, and no longer shows the result of the previous test.
  await resultOf(world.service.bot(bot, 'deleteWebhookRoute', { name: 'canary' }));
  await route.getByRole('button', { name: 'Send a test' }).click();
  await page.getByText('This no longer exists.').waitFor();
  expect(await route.getByRole('status').count()).toBe(0);
  expect(received).toEqual([]);
  expect(world.faults()).toEqual([]);
});

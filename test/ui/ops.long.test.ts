/**
 * Tests the operators' page in depth: axe in both colour schemes and every width, keyboard use, a refused token, and
 * unavailable stores.
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ageQueue } from '../support/queues.js';
import { resultOf, type TestBot, type TestUser } from '../support/service.js';
import { separateTests, startHook, startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Simulates Prometheus: answers each query about requests with one point of 300 requests, at the end of the range. */
function answerAsPrometheus({ url = '' }: IncomingMessage, response: ServerResponse): void {
  const { searchParams } = new URL(url, 'http://prometheus');
  const counts = searchParams.get('query')?.includes('petrel_requests_total');
  const result = counts
    ? [{ metric: { status: '200' }, values: [[Number(searchParams.get('end')), '300']] }]
    : [];
  response.end(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } }));
}

let prometheus: Server;
let world: World;
let hook: Awaited<ReturnType<typeof startHook>>;
let owner: TestUser;
let bot: TestBot;

beforeAll(async () => {
  prometheus = createServer(answerAsPrometheus);
  await new Promise<void>((resolve) => prometheus.listen(0, '127.0.0.1', resolve));
  const { port } = prometheus.address() as AddressInfo;
  const frontEnv = { PROMETHEUS_URL: `http://127.0.0.1:${port}` };
  world = await startWorld(frontEnv, { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
  const { service } = world;
  hook = await startHook(500);
  owner = await service.newUser('olga');
  bot = await service.newBot(owner, 'hooked');
  await service.openChat(owner, bot);
  await ageQueue(service, bot.id);
  await resultOf(service.bot(bot, 'setWebhook', hook.settings));
  await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'waits' }));
});
separateTests(() => world);
afterAll(async () => {
  await world?.stop();
  await hook?.close();
  prometheus?.close();
});

async function look(options: Parameters<World['open']>[2] = {}): Promise<Page> {
  const page = await world.open(null, '', options);
  await page.goto(`${world.wire.url}/ops`);
  await page.getByLabel("Operator's token").fill(world.service.adminToken);
  await page.keyboard.press('Enter');
  await page.getByRole('rowheader', { name: /^front/ }).waitFor();
  return page;
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe: all } = window as unknown as {
      axe: { run: () => Promise<{ violations: Array<{ id: string; nodes: Array<{ html: string }> }> }> };
    };
    return (await all.run()).violations;
  });
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
}

test.each(['light', 'dark'] as const)(
  "axe finds nothing on the operators' page in the %s look, on desktop and phone",
  async (colorScheme) => {
    const page = await look({ colorScheme, bypassCSP: true });
    await page.getByLabel('Order of bots').selectOption('dead_letters');
    await page.getByText('pieces of advice').click();
    await page.getByText('Show as a table').click();
    await page.getByRole('region', { name: 'Figures by time, table' }).waitFor();
    for (const width of [1300, 375]) {
      await page.setViewportSize({ width, height: 800 });
      await page.getByRole('button', { name: '1 dead letters' }).waitFor();
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      await shoot(page, `overview-${width}-${colorScheme}`);
      await page.getByRole('button', { name: '1 dead letters' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Replay all' }).click();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press('Escape');
    }
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel("Operator's token").waitFor();
    expect(await violations(page)).toEqual([]);
  },
);

/** Takes a screenshot if a folder for screenshots is set. */
async function shoot(page: Page, name: string): Promise<void> {
  const folder = process.env.PETREL_UI_SHOTS;
  if (folder) await page.screenshot({ path: `${folder}/ops-${name}.png`, fullPage: true });
}

/** Searches for the bot with the keyboard and opens its page. */
async function openBot(page: Page): Promise<void> {
  await page.getByLabel('Search bots and people').focus();
  await page.keyboard.type(bot.username.slice(1));
  await page.keyboard.press('Enter');
  const found = page.getByRole('region', { name: 'Found bots and people, table' });
  await found.getByRole('link', { name: `@${bot.username}` }).press('Enter');
  await page.getByRole('region', { name: 'Latest attempts, table' }).getByRole('row').nth(1).waitFor();
}

test.each(['light', 'dark'] as const)(
  'axe finds nothing on the pages of a bot and a person in the %s look, on desktop and phone',
  async (colorScheme) => {
    const page = await look({ colorScheme, bypassCSP: true });
    await openBot(page);
    const headings = async (name: string) => {
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: 900 });
        await page.getByRole('heading', { name, exact: true }).waitFor();
        expect(await violations(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
        await shoot(page, `${name.replace(/\W/g, '')}-${width}-${colorScheme}`);
      }
    };
    await headings(`@${bot.username}`);
    await page.getByRole('link', { name: `@${owner.username}` }).click();
    await headings(`@${owner.username}`);
    expect(await page.content()).not.toContain(world.service.adminToken);
  },
);

test('with the keyboard alone, an operator finds a bot, suspends the bot and ends the suspension', async () => {
  const page = await look();
  await openBot(page);
  expect(page.url()).toMatch(new RegExp(`#bots/${bot.id}$`));
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  expect(await focused()).toContain('Overview');
  const queue = page.getByRole('region', { name: 'Webhook and routes, table' });
  await queue.getByRole('rowheader', { name: /^webhook/ }).waitFor();
  const { host } = new URL(hook.settings.url);
  expect(await queue.textContent()).toContain(host);
  await page.getByRole('region', { name: 'Attempts by outcome, table' }).getByText(/500/).first().waitFor();
  await page.getByRole('button', { name: 'Suspend', exact: true }).press('Enter');
  // The confirmation first focuses Cancel, so that a second Enter does not suspend the bot.
  await expect.poll(focused).toBe('Cancel');
  expect((await world.service.bot(bot, 'getMe')).status).toBe(200);
  await page.getByRole('button', { name: 'Yes, suspend' }).press('Enter');
  await page.getByText(/^suspended since/).waitFor();
  expect((await world.service.bot(bot, 'getMe')).status).toBe(401);
  await page.getByRole('button', { name: 'End suspension' }).press('Enter');
  await page.getByRole('button', { name: 'Yes, end it' }).press('Enter');
  await page.getByText('active', { exact: true }).waitFor();
  expect((await world.service.bot(bot, 'getMe')).status).toBe(200);
  // The browser goes back to the overview. The overview still has the results of the search.
  await page.goBack();
  await page
    .getByRole('region', { name: 'Found bots and people, table' })
    .getByRole('link', { name: `@${bot.username}` })
    .waitFor();
  expect(world.faults()).toEqual([]);
});

test('the page of a bot lists the outcomes of each delivery queue separately', async () => {
  const { service } = world;
  const busy = await service.newBot(owner, 'busy');
  const database = new pg.Client(service.databaseUrl);
  await database.connect();
  // The route of slot 9 has been deleted, so the page shows no route name for its outcomes.
  await database
    .query(
      `insert into delivery_failures (bot_id, id, update_id, at, status, error, latency_ms, answer, tries, slot)
       select $1, n, n, now(), 502, 'bad gateway', 1, '', 1, case when n > 2 then 0 else 9 end
         from generate_series(1, 5) n`,
      [busy.id],
    )
    .finally(() => database.end());
  const page = await look();
  await page.goto(`${world.wire.url}/ops#bots/${busy.id}`);
  const rows = page.getByRole('region', { name: 'Attempts by outcome, table' }).getByRole('row');
  await rows.nth(1).waitFor();
  const counts = (await rows.allTextContents()).map((text) => /bad gateway(\d)/.exec(text)?.[1]);
  expect(counts).toEqual([undefined, '3', '2']);
});

test('if a bot does not exist, its page shows an error and a link back', async () => {
  const page = await look();
  await page.goto(`${world.wire.url}/ops#bots/999999999`);
  await page.getByText('Not Found: bot not found').waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('rowheader', { name: /^front/ }).waitFor();
});

test('an operator reserves and releases a username, and sees both calls in the audit log', async () => {
  const page = await look();
  const names = page.getByRole('region', { name: 'Reserved usernames, table' });
  await page.getByLabel('Username to reserve').fill('@Kept_By_Ops');
  await page.keyboard.press('Enter');
  await page.getByText('Nobody can take @Kept_By_Ops now.').waitFor();
  await names.getByRole('rowheader', { name: '@kept_by_ops' }).waitFor();
  await page.getByLabel('Username to reserve').fill(owner.username);
  await page.keyboard.press('Enter');
  await page.getByText('Bad Request: username is already taken').waitFor();
  await page.getByRole('button', { name: 'Release @kept_by_ops' }).press('Enter');
  await page.getByText('@kept_by_ops is free again.').waitFor();
  await names.getByText('No username is reserved.').waitFor();
  const log = page.getByRole('region', { name: 'Audit log, table' });
  await page.getByRole('button', { name: 'Refresh' }).click();
  await log
    .getByRole('row', { name: /^DELETE reserved_usernames.*200/ })
    .first()
    .waitFor();
  await log
    .getByRole('row', { name: /^POST reserved_usernames.*400/ })
    .first()
    .waitFor();
  // The log shows one page at a time.
  for (let n = 0; n < 25; n++)
    await world.service.app(
      { token: world.service.adminToken },
      'POST',
      `/api/admin/users/${n + 1}/suspension`,
    );
  await page.getByRole('button', { name: 'Refresh' }).click();
  await log
    .getByRole('row', { name: /^POST users.*404/ })
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Older calls' }).press('Enter');
  await log
    .getByRole('row', { name: /^DELETE reserved_usernames.*200/ })
    .first()
    .waitFor();
  expect(await log.getByRole('row').count()).toBeLessThanOrEqual(21);
  await page.getByRole('navigation', { name: 'Pages of the audit log' }).getByText('First page').click();
  await log
    .getByRole('row', { name: /^POST users.*404/ })
    .first()
    .waitFor();
});

test('while figures change, the rows of a table keep their order until a person clicks a column header', async () => {
  const info = () => world.service.bot(bot, 'getWebhookInfo');
  await info();
  const page = await look();
  const calls = page.getByRole('region', { name: 'Requests by call, table' });
  for (const name of ['getWebhookInfo', '/api/admin/overview', '/api/admin/bots'])
    await calls.getByRole('rowheader', { name, exact: true }).waitFor();
  const names = () => calls.getByRole('rowheader').allTextContents();
  const head = calls.getByRole('button', { name: 'Total' });
  await calls.focus();
  for (let i = 0; i < 9; i++) await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Total');
  await page.keyboard.press('Enter');
  const before = await names();
  for (let i = 0; i < 500; i++) await info();
  const total = calls.getByRole('row', { name: 'getWebhookInfo' }).getByRole('cell').last();
  await expect.poll(() => total.textContent(), { timeout: 20_000 }).toBe('501');
  expect(await names()).toEqual(before);
  expect(before[0]).not.toBe('getWebhookInfo');
  await head.press('Enter');
  await expect.poll(async () => (await names())[0]).toBe('getWebhookInfo');
  expect(world.faults()).toEqual([]);
});

test('the pointer or the keyboard selects a point in time, and the charts show the values at this point', async () => {
  await resultOf(world.service.bot(bot, 'getMe'));
  const page = await look();
  const chart = (name: string) => page.getByRole('slider', { name: `${name}, point in time`, exact: true });
  const requests = chart('Requests');
  const text = () => requests.getAttribute('aria-valuetext');
  // The service is younger than an hour, so only the last points have values.
  await expect.poll(text).toMatch(/^\d\d:\d\d:\d\d: [<\d.]+ \/s$/);
  await expect.poll(() => requests.inputValue()).toBe('719');
  await requests.press('Home');
  expect(await requests.inputValue()).toBe('0');
  expect(await text()).toMatch(/^\d\d:\d\d:\d\d: –$/);
  await requests.press('ArrowRight');
  expect(await requests.inputValue()).toBe('1');
  const outcomes = chart('Delivery attempts by outcome');
  expect(await outcomes.inputValue()).toBe('1');
  await outcomes.hover();
  await expect.poll(async () => Math.abs(Number(await outcomes.inputValue()) - 360)).toBeLessThan(10);
  const width = (await outcomes.boundingBox())?.width ?? 0;
  await outcomes.hover({ position: { x: width - 1, y: 10 } });
  await expect.poll(async () => Number(await outcomes.inputValue())).toBeGreaterThan(710);
  await expect
    .poll(() => outcomes.getAttribute('aria-valuetext'))
    .toMatch(/: delivered [\d.]+ \/s, 5xx [<\d.]+ \/s$/);
});

test("the operators' page loads the whole history once, and then loads only new points", async () => {
  const page = await world.open(null);
  const queries: string[] = [];
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname === '/api/admin/history') queries.push(search);
  });
  await page.goto(`${world.wire.url}/ops`);
  await page.getByLabel("Operator's token").fill(world.service.adminToken);
  await page.keyboard.press('Enter');
  // The page asks for new points every 5 s.
  await expect.poll(() => queries.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(3);
  const [first, ...later] = queries.map((query) => query.replace(/=\d+$/, '=time'));
  expect(first).toBe('?range=1h');
  expect(new Set(later)).toEqual(new Set(['?range=1h&after_ms=time']));
});

test('an operator can select a longer range, whose figures come from Prometheus', async () => {
  const page = await look();
  const requests = page.getByRole('slider', { name: 'Requests, point in time', exact: true });
  const range = page.getByLabel('Range of the charts');
  await page.getByText('a point every 5 s').waitFor();
  await range.selectOption('6 hours');
  await page.getByText('a point every 30 s').waitFor();
  await expect.poll(() => requests.getAttribute('aria-valuetext')).toMatch(/: 10\.0 \/s$/);
  await range.selectOption('7 days');
  await page.getByText('a point every 14 min').waitFor();
  prometheus.closeAllConnections();
  await new Promise((resolve) => prometheus.close(resolve));
  await range.selectOption('24 hours');
  await page.getByText('Service Unavailable: retry after 1').waitFor();
  await range.selectOption('1 hour');
  await page.getByText('a point every 5 s').waitFor();
});

test("while no front or no Redis is available, the operators' page keeps its content and shows an error", async () => {
  const page = await look();
  world.wire.cut();
  await page.getByText(/^No front answers\./).waitFor();
  expect(await page.getByRole('rowheader', { name: /^front/ }).count()).toBe(1);
  world.wire.restore();
  await page.getByText(/^No front answers\./).waitFor({ state: 'detached' });
  const { pid } = world.service.redis;
  process.kill(pid, 'SIGSTOP');
  await page.getByText('Redis does not answer').waitFor();
  process.kill(pid, 'SIGCONT');
  await page.getByText('Redis does not answer').waitFor({ state: 'detached' });
  expect(world.faults()).toEqual([]);
});

/**
 * Tests the operators' page in depth: axe in every look and width, keyboard use, a refused token, unavailable stores.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ageQueue } from '../support/queues.js';
import { resultOf, type TestBot, type TestUser } from '../support/service.js';
import { startHook, startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let world: World;
let hook: Awaited<ReturnType<typeof startHook>>;
let owner: TestUser;
let bot: TestBot;

beforeAll(async () => {
  world = await startWorld({}, { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
  const { service } = world;
  hook = await startHook(500);
  owner = await service.newUser('olga');
  bot = await service.newBot(owner, 'hooked');
  await service.openChat(owner, bot);
  await ageQueue(service, bot.id);
  await resultOf(service.bot(bot, 'setWebhook', hook.settings));
  await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'waits' }));
});
afterAll(async () => {
  await world?.stop();
  await hook?.close();
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
    for (const width of [1300, 375]) {
      await page.setViewportSize({ width, height: 800 });
      await page.getByRole('button', { name: '1 dead letters' }).waitFor();
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      await page.getByRole('button', { name: '1 dead letters' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Replay all' }).click();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press('Escape');
    }
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel("Operator's token").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.context().close();
  },
);

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
  await page.context().close();
});

test("while no front or no Redis answers, the operators' page keeps its content and shows an error", async () => {
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
  await page.context().close();
});

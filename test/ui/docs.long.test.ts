import { mkdirSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterEach, expect, test, vi } from 'vitest';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

/** If this variable names a folder, screenshots are stored there. */
const shots = process.env.PETREL_UI_SHOTS;

let world: World;
let problems: string[] = [];

onSharedWorld(async (opened) => {
  world = opened;
  if (shots) mkdirSync(shots, { recursive: true });
});
afterEach(() => {
  expect(problems).toEqual([]);
  problems = [];
});

async function open(path: string, options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
  const context = await world.browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const base = world.service.fronts[0].url;
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(base) && !request.url().startsWith('data:')) problems.push(request.url());
  });
  await page.goto(base + path);
  return page;
}

const shot = (page: Page, name: string) =>
  shots ? page.screenshot({ path: `${shots}/docs-${name}.png` }) : undefined;

const heading = (page: Page, text: string) =>
  page.locator('h1, h2').filter({ hasText: new RegExp(`^\\s*${text}\\s*$`) });

const background = (page: Page) =>
  page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g)?.map(Number));
const overflow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

test('a search in the documentation finds a method by its name, with samples in three languages', async () => {
  const page = await open('/docs');
  await shot(page, 'start');
  await page.getByRole('searchbox').fill('sendmess');
  const first = page.locator('.found a').first();
  await expect.poll(() => first.innerText()).toContain('sendMessage');
  await shot(page, 'search');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/docs/reference#/bot-methods/sendmessage');
  await heading(page, 'sendMessage').waitFor();
  const panel = page
    .locator('[data-testid="right-panel"]', { hasText: 'POST/bot{token}/sendMessage' })
    .first();
  await expect.poll(() => panel.innerText()).toContain('curl "http');
  await shot(page, 'reference');
  for (const [from, to, text] of [
    ['curl', 'JavaScript', 'await fetch('],
    ['JavaScript', 'Python', 'requests.post('],
  ] as const) {
    await panel.getByText(from, { exact: true }).first().click();
    await page.getByRole('menuitem', { name: to, exact: true }).filter({ visible: true }).click();
    await expect.poll(() => panel.innerText()).toContain(text);
  }
});

test('the API reference lists each method once', async () => {
  const page = await open('/docs/reference');
  await page.locator('a[href="#/bot-methods"]').first().click();
  const links = page.locator('[data-component-name="Menu/MenuItem"] a[href="#/bot-methods/sendmessage"]');
  await expect.poll(() => links.count()).toBe(1);
  const base = world.service.fronts[0].url;
  await page.goto(`${base}/docs/reference#/webhooks/update`);
  await page.getByText('webhook-signature').first().waitFor();
  await page.goto(`${base}/docs/reference#/apistream/appgetstreamposts`);
  await page.getByRole('tab', { name: 'post_reactions' }).first().waitFor();
});

test('the documentation follows the light or dark mode of the system, until a person chooses one', async () => {
  const page = await open('/docs/bots', { colorScheme: 'dark' });
  await expect.poll(async () => Math.max(...((await background(page)) ?? []))).toBeLessThan(80);
  await shot(page, 'guide-dark');
  await page.getByRole('button', { name: 'Theme' }).click();
  await expect.poll(async () => Math.min(...((await background(page)) ?? []))).toBeGreaterThan(200);
  await page.goto(`${world.service.fronts[0].url}/docs/reference`);
  await page.getByRole('heading', { name: /^Petrel/ }).waitFor();
  await expect.poll(async () => Math.min(...((await background(page)) ?? []))).toBeGreaterThan(200);
  await page.getByTestId('color-mode-switcher').click();
  await expect.poll(async () => Math.max(...((await background(page)) ?? []))).toBeLessThan(80);
  await shot(page, 'reference-dark');
});

test('the pages of the documentation do not scroll sideways at a width of 390 px', async () => {
  for (const [path, name] of [
    ['/docs', 'start'],
    ['/docs/bots', 'guide'],
    ['/docs/operating', 'operating'],
    ['/docs/reference#/bot-methods/sendmessage', 'reference'],
  ] as const) {
    const page = await open(path, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
    await page.getByRole('heading').first().waitFor();
    if (name === 'reference') await heading(page, 'sendMessage').waitFor();
    await expect.poll(async () => [name, await overflow(page)]).toEqual([name, 0]);
    await shot(page, `phone-${name}`);
    await page.context().close();
  }
});

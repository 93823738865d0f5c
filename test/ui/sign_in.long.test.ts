/** Tests in a browser: sign-up, sign-in through a real identity provider, and the end of sessions. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { signInAs, startProvider, type TestProvider } from '../support/oidc.js';
import { itemsOf, resultOf, type TestUser } from '../support/service.js';
import { separateTests, startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

const folder = process.env.PETREL_UI_SHOTS;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let provider: TestProvider;
let world: World;
let alice: TestUser;

beforeAll(async () => {
  const port = await freePort();
  provider = await startProvider(`http://127.0.0.1:${port}`, { locale: 'en' });
  const opened = { SIGN_UP: 'open', SIGN_UPS_PER_ADDRESS: '0', SUGGESTED_CHATS: 'trail_news guide_bot' };
  const settings = { ...provider.settings, ...opened };
  world = await startWorld({}, settings, true, port);
  alice = await world.service.newUser('alice');
});
separateTests(() => world);
afterAll(async () => {
  await world?.stop();
  await provider?.close();
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const list = (page: Page) => page.getByRole('heading', { name: 'Chats' }).waitFor();
const tokenIn = (page: Page) =>
  page.evaluate(() => sessionStorage.getItem('petrel.token') ?? localStorage.getItem('petrel.token') ?? '');

async function signUp(page: Page, name: string, username: string): Promise<void> {
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByLabel('Username').fill(username);
  await button(page, 'Create an account').click();
}

/** Signs in at the provider. Its pages are simple forms for tests. */
async function passProvider(page: Page, login: string): Promise<void> {
  await button(page, 'Sign in with Example ID').click();
  await page.locator('input[name=login]').fill(login);
  await page.locator('input[name=password]').fill('x');
  await page.locator('button[type=submit]').click();
  await page.locator('button[type=submit]').click();
}

const serious = (page: Page) =>
  page.evaluate(axe).then(() =>
    page.evaluate(async () => {
      type Violation = { id: string; impact: string; nodes: Array<{ html: string; failureSummary: string }> };
      const { axe: run } = window as unknown as { axe: { run: () => Promise<{ violations: Violation[] }> } };
      const { violations } = await run.run();
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
    }),
  );

/**
 * Checks a page in the light and the dark look, on a desktop and on a phone. Takes screenshots if PETREL_UI_SHOTS is
 * set.
 */
async function checkLooks(page: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const [size, viewport] of [
      ['desktop', { width: 1280, height: 800 }],
      ['phone', { width: 390, height: 844 }],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(viewport);
      await expect.poll(() => serious(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThan(2);
      if (!folder) continue;
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${size}.png`) });
    }
}

test('a person creates an account and joins the chat of the invite link that they opened', async () => {
  const { service } = world;
  const group = await service.newGroup(alice, 'Climbers', []);
  const { invite_link } = await resultOf(service.app(alice, 'POST', `/api/chats/${group}/invite_links`, {}));
  const code = String(invite_link).split('/').at(-1);
  const page = await world.open(null, `#/join/${code}`);
  await signUp(page, 'Maria', alice.username);
  await page.getByRole('alert').getByText('This username is taken.').waitFor();
  await page.getByLabel('Username').fill('maria_new');
  await button(page, 'Create an account').click();
  await button(page, 'Join').click();
  const token = await tokenIn(page);
  service.issued(token);
  const members = () => itemsOf(service.app(alice, 'GET', `/api/chats/${group}/members`));
  const names = async () =>
    (await members()).map(({ user }: { user: { first_name: string } }) => user.first_name);
  await expect.poll(names).toContain('Maria');
  expect(world.faults()).toEqual([]);
});

test('a person signs in through the provider, and signing out ends the session', async () => {
  const { service } = world;
  const page = await world.open(null, '#/settings');
  const addresses: string[] = [];
  page.on('framenavigated', (frame) => addresses.push(frame.url()));
  await passProvider(page, 'victor');
  await page.getByRole('heading', { name: 'Where you are signed in' }).waitFor();
  expect(page.url()).toBe(`${world.wire.url}/app#/settings`);
  const token = await tokenIn(page);
  service.issued(token);
  expect((await resultOf(service.app({ token }, 'GET', '/api/me'))).first_name).toBe('VICTOR');
  expect(addresses.join(' ')).not.toContain(token);
  expect(await page.context().cookies(world.wire.url)).toEqual(
    expect.not.arrayContaining([expect.objectContaining({ name: 'petrel-sign-in' })]),
  );
  // The browser's history no longer contains the sign-in code, so a reload does not use the code again.
  await page.reload();
  await page.getByText('This browser').waitFor();
  await button(page, 'Sign out').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
  await button(page, 'Sign in with Example ID').waitFor();
  await expect.poll(async () => (await service.app({ token }, 'GET', '/api/me')).status).toBe(401);
});

test('a person who chose to stay signed in is still signed in after the browser was closed', async () => {
  const page = await world.open(null);
  await page.getByLabel('Stay signed in on this device').check();
  await passProvider(page, 'walter');
  await list(page);
  const next = await page.context().newPage();
  await page.close();
  await next.goto(`${world.wire.url}/app`);
  await list(next);
  world.service.issued(await tokenIn(next));
});

test('a failed sign-in says why, and the person can try again', async () => {
  const page = await world.open(null, '?code=stolen&state=of-somebody-else');
  await page.getByRole('alert').getByText('This sign-in is no longer valid. Start again.').waitFor();
  expect(page.url()).toBe(`${world.wire.url}/app`);
  provider.fault = ({ url }, response) => {
    const isToken = url?.startsWith('/token') ?? false;
    if (isToken) response.destroy();
    return isToken;
  };
  await passProvider(page, 'xavier');
  await page.getByRole('alert').getByText('The sign-in service can’t be reached').waitFor();
  provider.fault = null;
  await page.context().clearCookies();
  await passProvider(page, 'xavier');
  await list(page);
  world.service.issued(await tokenIn(page));
});

test('a person who signed up and has only one session must confirm a sign-out', async () => {
  const page = await world.open(null);
  await signUp(page, 'Olga', 'olga_new');
  await list(page);
  world.service.issued(await tokenIn(page));
  await page.getByRole('link', { name: 'Settings' }).click();
  await button(page, 'Sign out').click();
  const dialog = page.getByRole('dialog', { name: 'Sign out' });
  await dialog.getByText('you need a token from an administrator').waitFor();
  await button(page, 'Cancel').click();
  await dialog.waitFor({ state: 'detached' });
  await page.reload();
  await button(page, 'Sign out').click();
  await dialog.getByRole('button', { name: 'Sign out' }).click();
  await button(page, 'Create an account').waitFor();
});

test('a person ends one session or all other sessions, and the windows of the ended sessions are signed out', async () => {
  const { service } = world;
  const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  await signInAs(service, 'yvonne', 0, firefox);
  const options = { bypassCSP: true };
  const [here, there] = [await world.open(null, '', options), await world.open(null)];
  for (const page of [here, there]) {
    await passProvider(page, 'yvonne');
    await list(page);
    service.issued(await tokenIn(page));
  }
  await here.goto(`${world.wire.url}/app#/settings`);
  const sessions = here.getByRole('region', { name: 'Where you are signed in' });
  await sessions.getByRole('listitem').nth(2).waitFor();
  await sessions.getByText('This browser').waitFor();
  await sessions.scrollIntoViewIfNeeded();
  await checkLooks(here, 'sessions');
  await button(here, 'End the session in Firefox on Linux').click();
  await expect.poll(() => sessions.getByRole('listitem').count()).toBe(2);
  await button(here, 'End all other sessions').click();
  await here.getByRole('dialog').getByRole('button', { name: 'End all other sessions' }).click();
  await button(there, 'Sign in with Example ID').waitFor();
  await expect.poll(() => sessions.getByRole('listitem').count()).toBe(1);
  expect(await button(here, 'End all other sessions').count()).toBe(0);
});

test('a person can still sign in with a token, and the settings name the token instead of a session', async () => {
  const page = await world.open(null, '#/settings');
  await page.getByText('Sign in with a token').click();
  await page.getByLabel('Your token').fill(alice.token);
  await button(page, 'Sign in').click();
  await page.getByText('You signed in with a token in this browser.').waitFor();
  await button(page, 'Sign out').click();
  await button(page, 'Sign in with Example ID').waitFor();
  expect((await world.service.app(alice, 'GET', '/api/me')).status).toBe(200);
});

test('a new person sees the management bot and suggestions, and opens a suggestion', async () => {
  const { service } = world;
  const channel = { type: 'channel', title: 'Trail news', username: 'trail_news' };
  await resultOf(service.app(alice, 'POST', '/api/chats', channel));
  const bot = { username: 'guide_bot', name: 'Mountain Guide' };
  const { id } = await resultOf(service.app(alice, 'POST', '/api/me/bots', bot));
  const short_description = {
    '': 'Routes, weather and company for the weekend, in all seasons of the year.',
  };
  await resultOf(service.app(alice, 'PATCH', `/api/me/bots/${id}`, { short_description }));
  const page = await world.open(null, '', { bypassCSP: true });
  await signUp(page, 'Nora', 'nora_new');
  await page.getByRole('navigation', { name: 'Chats' }).getByText('Petrel').first().waitFor();
  const suggested = page.getByRole('region', { name: 'Suggested' });
  await suggested.getByRole('link', { name: 'Mountain Guide' }).waitFor();
  service.issued(await tokenIn(page));
  await checkLooks(page, 'suggestions');
  await suggested.getByRole('link', { name: 'Trail news' }).click();
  await button(page, 'Join').click();
  await expect.poll(() => suggested.getByRole('link', { name: 'Trail news' }).count()).toBe(0);
});

test('the sign-in page is accessible in the light and the dark theme', async () => {
  const page = await world.open(null, '', { bypassCSP: true });
  await button(page, 'Create an account').waitFor();
  await checkLooks(page, 'sign-in-ways');
  await page.getByText('Sign in with a token').click();
  await checkLooks(page, 'sign-in-token');
});

/** Tests what a person keeps across reloads, windows and chats: unsent messages, drafts, unread counts and membership. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { png } from '../support/samples.js';
import { itemsOf, type TestUser } from '../support/service.js';
import { startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bob: TestUser;

beforeAll(async () => {
  world = await startWorld();
  [alice, bob] = await Promise.all([world.service.newUser('alice'), world.service.newUser('bob')]);
});
afterAll(() => world?.stop());

const field = (page: Page) => page.getByRole('combobox', { name: 'Message' });

async function write(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await page.keyboard.press('Enter');
  await page.getByRole('log').getByText(text, { exact: true }).waitFor();
}

/** Returns the texts of a chat, oldest first. */
const textsOf = async (chat: number): Promise<string[]> =>
  (await itemsOf(world.service.app(bob, 'GET', `/api/chats/${chat}/messages`)))
    .flatMap(({ text, caption }: { text?: string; caption?: string }) => text ?? caption ?? [])
    .reverse();

test('messages that were unsent at a reload are sent once and in order', async () => {
  const chat = await world.service.newGroup(alice, 'Ferry', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  // The service gets the first message, but its answer never arrives. The others wait behind it.
  await page.route('**/messages', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    await route.fetch();
  });
  await write(page, 'first');
  await write(page, 'second');
  await page
    .getByLabel('Attach a picture')
    .last()
    .setInputFiles({
      name: 'sea.png',
      mimeType: 'image/png',
      buffer: png(64, 48),
    });
  await write(page, 'third');
  await expect.poll(() => textsOf(chat)).toEqual(['first']);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.reload();
  await expect.poll(() => textsOf(chat)).toEqual(['first', 'second', 'third']);
  const shown = page.getByRole('log').locator('article');
  await expect.poll(() => shown.locator('.text').allTextContents()).toEqual(['first', 'second', 'third']);
  await shown.last().locator('img').waitFor();
  await page.reload();
  await page.getByRole('log').getByText('third').waitFor();
  await expect.poll(() => page.getByText('Sending').count()).toBe(0);
  expect(await textsOf(chat)).toEqual(['first', 'second', 'third']);
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test('a refused message is shown as not sent after a reload, until the person deletes it', async () => {
  const chat = await world.service.newGroup(alice, 'Pier', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  const refusal = { ok: false, error_code: 400, description: 'Bad Request: message is too long' };
  await page.route('**/messages', (route) =>
    route.request().method() === 'POST' ? route.fulfill({ status: 400, json: refusal }) : route.continue(),
  );
  await write(page, 'refused');
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.reload();
  await page.getByRole('log').getByText('refused', { exact: true }).waitFor();
  await page.getByRole('log').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('refused', { exact: true }).waitFor({ state: 'detached' });
  await page.reload();
  await field(page).waitFor();
  await page.getByText('alice created the group').first().waitFor();
  expect(await page.getByRole('log').getByText('refused', { exact: true }).count()).toBe(0);
  expect(await textsOf(chat)).toEqual([]);
  await page.context().close();
});

test('a draft survives a reload, and a sign-out removes it', async () => {
  const chat = await world.service.newGroup(alice, 'Dock', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  await field(page).fill('half a thought');
  await page.reload();
  await expect.poll(() => field(page).inputValue()).toBe('half a thought');
  await page.goto(`${world.wire.url}/app#/settings`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  const signIn = async (user: TestUser) => {
    await page.getByLabel('Your token').fill(user.token);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Chats' }).waitFor();
    await page.goto(`${world.wire.url}/app#/chat/${chat}`);
    await field(page).waitFor();
    await page.getByText('alice created the group').first().waitFor();
  };
  await signIn(alice);
  expect(await field(page).inputValue()).toBe('');
  await field(page).fill('of alice');
  await page.evaluate(() => sessionStorage.clear());
  await page.reload();
  await signIn(bob);
  expect(await field(page).inputValue()).toBe('');
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

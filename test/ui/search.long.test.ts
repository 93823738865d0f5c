/** Tests the search of messages in the list of chats and in a chat. */
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { itemsOf, resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bob: TestUser;
let group: number;
let target: number;

const say = async (text: string): Promise<number> =>
  (await resultOf(world.service.app(bob, 'POST', `/api/chats/${group}/messages`, { text }))).message_id;

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  group = await service.newGroup(alice, 'Lighthouse keepers', [bob]);
  await service.newGroup(alice, 'Lighthouse visitors', [bob]);
  target = await say('The lantern needs oil');
  // The searched message is not on the first page of the chat.
  for (let n = 0; n < 70; n++) await say(`Log entry ${n}`);
});

/** Waits until the last message is in Postgres, so that searches find all messages. */
const written = () =>
  expect
    .poll(() => itemsOf(world.service.app(alice, 'GET', `/api/chats/${group}/search?query=entry%2069`)))
    .toHaveLength(1);

const found = (page: Page) => page.locator('.chat-row.found');
const bubble = (page: Page) => page.getByRole('log').locator('article').getByText('The lantern needs oil');

test('a search in the chat list shows chats and messages in separate groups, and a click opens a message', async () => {
  await written();
  const page = await world.open(alice);
  const field = page.getByRole('searchbox', { name: 'Chat or @username' });
  await field.fill('light');
  const chats = page.getByRole('region', { name: 'Chats' });
  await expect.poll(() => chats.locator('.chat-row').count()).toBe(2);
  await page.getByRole('status').getByText('Nothing found').waitFor();
  await field.fill('LANTERN oil');
  await found(page).waitFor();
  expect(await found(page).locator('mark').allTextContents()).toEqual(['lantern', 'oil']);
  expect(await chats.count()).toBe(0);
  await found(page).click();
  await bubble(page).waitFor();
  await expect.poll(() => bubble(page).isVisible()).toBe(true);
  await expect.poll(() => page.url()).toMatch(new RegExp(`#/chat/${group}$`));
  // A second click on the same search result opens the message again.
  await page.getByRole('button', { name: /newest/i }).click();
  await page.getByRole('log').getByText('Log entry 69', { exact: true }).waitFor();
  await found(page).click();
  await expect.poll(() => bubble(page).isVisible()).toBe(true);
  expect(world.faults()).toEqual([]);
});

test('the search results of the chat list can be reached with the keyboard', async () => {
  await written();
  const page = await world.open(alice);
  await page.getByRole('searchbox', { name: 'Chat or @username' }).fill('lantern');
  await found(page).waitFor();
  await found(page).focus();
  await page.keyboard.press('Enter');
  await bubble(page).waitFor();
});

test('a link to a message opens the chat at the message', async () => {
  const page = await world.open(alice, `#/chat/${group}/${target}`);
  await expect.poll(() => bubble(page).isVisible()).toBe(true);
});

test('a search in a chat jumps to the found messages, and Escape ends the search', async () => {
  await written();
  const page = await world.open(alice, `#/chat/${group}`);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('button', { name: 'Search in this chat' }).click();
  const field = page.getByRole('searchbox', { name: 'Search in this chat' });
  await expect.poll(() => field.evaluate((input) => input === document.activeElement)).toBe(true);
  await field.fill('log entry');
  await expect.poll(() => found(page).count()).toBe(20);
  await page.getByRole('button', { name: 'Search further' }).click();
  await expect.poll(() => found(page).count()).toBe(40);
  await field.fill('needs');
  await expect.poll(() => found(page).count()).toBe(1);
  await found(page).click();
  await expect.poll(() => bubble(page).isVisible()).toBe(true);
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await field.press('Escape');
  await expect.poll(() => field.count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

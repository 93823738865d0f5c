/** Tests how a person pins and archives chats, and that the person's other windows show the change. */
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bob: TestUser;
const titles = ['Anchor', 'Buoy', 'Compass', 'Deck', 'Ensign', 'Flag', 'Gale'];
const groups = new Map<string, number>();

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  for (const title of titles) groups.set(title, await service.newGroup(alice, title, [bob]));
});

const app = (verb: string, title: string, what: string, body?: object) =>
  resultOf(world.service.app(alice, verb, `/api/chats/${groups.get(title)}/${what}`, body));
const say = (title: string, text: string) =>
  resultOf(world.service.app(bob, 'POST', `/api/chats/${groups.get(title)}/messages`, { text }));
const row = (page: Page, title: string) => page.locator(`.chat-row[href="#/chat/${groups.get(title)}"]`);
const archiveRow = (page: Page) => page.getByRole('link', { name: /^Archive/ });
const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor();
const gone = (page: Page, title: string) => row(page, title).waitFor({ state: 'detached' });
const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute('href'));

async function choose(page: Page, title: string, item: string): Promise<void> {
  await row(page, title).click({ button: 'right' });
  await page.getByRole('menuitem', { name: item, exact: true }).click();
}

async function firstRows(page: Page, ...expected: string[]): Promise<void> {
  const hrefs = expected.map((title) => `#/chat/${groups.get(title)}`);
  const shown = () =>
    page
      .locator('.chat-row-box > .chat-row')
      .evaluateAll((rows, n) => rows.slice(0, n).map((one) => one.getAttribute('href')), hrefs.length);
  await expect.poll(shown).toEqual(hrefs);
}

test('a pinned chat is at the top of the list in every window of the person, until it is unpinned', async () => {
  const [page, other] = [await world.open(alice), await world.open(alice)];
  await choose(page, 'Buoy', 'Pin');
  await choose(page, 'Anchor', 'Pin');
  for (const window of [page, other]) {
    await firstRows(window, 'Anchor', 'Buoy');
    await row(window, 'Anchor').getByText('Pinned', { exact: true }).waitFor({ state: 'attached' });
  }
  await say('Compass', 'A message does not move a chat above the pinned chats');
  for (const window of [page, other]) await firstRows(window, 'Anchor', 'Buoy', 'Compass');
  await choose(other, 'Anchor', 'Unpin');
  for (const window of [page, other]) await firstRows(window, 'Buoy', 'Compass');
  await app('DELETE', 'Buoy', 'list_pin');
  for (const window of [page, other]) await firstRows(window, 'Compass');
  expect(world.faults()).toEqual([]);
});

test('the person learns why a sixth chat cannot be pinned', async () => {
  const page = await world.open(alice);
  const pinned = titles.slice(0, 5);
  for (const title of pinned) await app('PUT', title, 'list_pin');
  await firstRows(page, ...[...pinned].reverse());
  await choose(page, 'Flag', 'Pin');
  await page.getByText('You can’t pin more chats. Unpin one first.').waitFor();
  await firstRows(page, ...[...pinned].reverse());
  for (const title of pinned) await app('DELETE', title, 'list_pin');
});

test('a chat can be archived, found and brought back with the keyboard', async () => {
  const page = await world.open(alice);
  await row(page, 'Deck').focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('menu').waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await gone(page, 'Deck');
  // The archive is the first row of the chat list, so the arrow keys reach it.
  await page.locator('.chat-row-box > .chat-row').first().focus();
  await page.keyboard.press('ArrowUp');
  expect(await focused(page)).toBe('#/archive');
  await page.keyboard.press('Enter');
  await heading(page, 'Archive');
  await row(page, 'Deck').waitFor();
  expect(await page.locator('.chat-row').count()).toBe(1);
  await row(page, 'Deck').focus();
  await page.keyboard.press('Escape');
  await heading(page, 'Chats');
  await expect.poll(() => focused(page)).toBe('#/archive');
  await page.keyboard.press('Enter');
  await choose(page, 'Deck', 'Unarchive');
  await page.getByText('There are no archived chats.').waitFor();
  await page.getByRole('link', { name: 'Back', exact: true }).click();
  await row(page, 'Deck').waitFor();
  expect(await archiveRow(page).count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

test('a message brings an archived chat back in every window, and a muted chat stays in the archive', async () => {
  const [page, other] = [await world.open(alice), await world.open(alice)];
  await app('PUT', 'Flag', 'mute');
  await choose(page, 'Ensign', 'Archive');
  await choose(page, 'Flag', 'Archive');
  for (const window of [page, other]) for (const title of ['Ensign', 'Flag']) await gone(window, title);
  await say('Flag', 'quiet');
  await say('Ensign', 'loud');
  for (const window of [page, other]) {
    await row(window, 'Ensign').waitFor();
    expect(await row(window, 'Flag').count()).toBe(0);
    await archiveRow(window).getByText('1 unread').waitFor({ state: 'attached' });
    await archiveRow(window).getByText('Flag', { exact: true }).waitFor();
  }
  // Reloads the page, because the list that the service returns must have the same order.
  await page.reload();
  await row(page, 'Ensign').waitFor();
  await archiveRow(page).getByText('1 unread').waitFor({ state: 'attached' });
  expect(await row(page, 'Flag').count()).toBe(0);
  // The search finds archived chats too.
  await page.getByRole('searchbox').fill('Flag');
  await row(page, 'Flag').waitFor();
  await app('DELETE', 'Flag', 'archive');
  await archiveRow(other).waitFor({ state: 'detached' });
  await row(other, 'Flag').waitFor();
  await app('DELETE', 'Flag', 'mute');
  expect(world.faults()).toEqual([]);
});

test('on a phone, the Back link of an archived chat leads to the archive', async () => {
  await app('PUT', 'Gale', 'archive');
  const page = await world.open(alice, '', { viewport: { width: 390, height: 844 } });
  await archiveRow(page).click();
  await heading(page, 'Archive');
  await row(page, 'Gale').click();
  await page.getByRole('log').waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Back', exact: true }).click();
  await heading(page, 'Archive');
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await row(page, 'Gale').click();
  await page.getByRole('button', { name: 'About Gale' }).click();
  const about = page.getByRole('dialog', { name: 'About Gale' });
  await about.getByRole('button', { name: 'Unarchive' }).click();
  await about.getByRole('button', { name: 'Pin', exact: true }).click();
  await about.getByRole('button', { name: 'Unpin', exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('main').getByRole('link', { name: 'Back', exact: true }).click();
  await heading(page, 'Chats');
  await firstRows(page, 'Gale');
  await app('DELETE', 'Gale', 'list_pin');
  expect(world.faults()).toEqual([]);
});

/**
 * Tests chats of two people in the application: how such chats are opened, and what happens when a person is blocked.
 */
import type { Page } from 'playwright-core';
import { beforeEach, expect, test, vi } from 'vitest';
import { png } from '../support/samples.js';
import { resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bob: TestUser;

onSharedWorld((opened) => {
  world = opened;
});
beforeEach(async () => {
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('Alice'), service.newUser('Bob')]);
});

const app = (who: TestUser, verb: string, path: string, body?: object) =>
  resultOf(world.service.app(who, verb, path, body));
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const composer = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const row = (page: Page, name: string) => page.locator('.chat-row', { hasText: name });
const openChat = async (): Promise<number> =>
  (await app(alice, 'POST', `/api/people/${bob.username}/chat`, {})).id;

async function shot(page: Page, name: string): Promise<void> {
  const folder = process.env.PETREL_UI_SHOTS;
  if (folder === undefined) return;
  const usual = page.viewportSize();
  for (const [look, colorScheme, size] of [
    ['light', 'light', usual],
    ['dark', 'dark', usual],
    ['phone', 'light', { width: 390, height: 780 }],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    if (size) await page.setViewportSize(size);
    await page.screenshot({ path: `${folder}/people-${name}-${look}.png` });
  }
  if (usual) await page.setViewportSize(usual);
}

test('people open their chat from the new-chat dialog and write to each other', async () => {
  const [page, other] = [await world.open(alice), await world.open(bob)];
  await button(page, 'New chat').click();
  await page.getByRole('textbox', { name: 'Username' }).fill(`@${bob.username}`);
  await shot(page, 'new-chat');
  await button(page, 'Open chat').click();
  await composer(page).fill('Hello Bob');
  expect(await row(page, 'Bob').count()).toBe(0);
  expect(await row(other, 'Alice').count()).toBe(0);
  await page.keyboard.press('Enter');
  await row(page, 'Bob').waitFor();
  await row(other, 'Alice').click();
  await other.getByText('Hello Bob').last().waitFor();
  await composer(other).fill('Hello Alice');
  await other.keyboard.press('Enter');
  await page.locator('.message', { hasText: 'Hello Alice' }).waitFor();
  await shot(page, 'chat');
  expect(world.faults()).toEqual([]);
});

test('the search finds a person by username, and the page of the person opens the chat', async () => {
  const page = await world.open(alice);
  await page.getByRole('searchbox').fill(`@${bob.username}`);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Bob', exact: true }).first().waitFor();
  await shot(page, 'profile');
  await button(page, 'Write a message').click();
  await composer(page).waitFor();
  expect(page.url()).toContain(`#/chat/${await openChat()}`);
});

test('the members of a group link to the pages of people', async () => {
  const group = await world.service.newGroup(alice, 'Walkers', [bob]);
  const page = await world.open(alice, `#/chat/${group}`);
  await button(page, 'About Walkers').click();
  await page.getByRole('dialog').getByRole('link', { name: 'Bob' }).click();
  await button(page, 'Write a message').click();
  await composer(page).waitFor();
});

test('after one person blocks another, neither can write until the block ends', async () => {
  const chat = await openChat();
  await app(alice, 'POST', `/api/chats/${chat}/messages`, { text: 'Hello Bob' });
  const [page, other] = [await world.open(alice, `#/chat/${chat}`), await world.open(bob, `#/chat/${chat}`)];
  await composer(page).waitFor();
  await button(other, 'About Alice').click();
  await button(other, 'Block').click();
  await other
    .getByRole('dialog', { name: 'Block' })
    .getByRole('button', { name: 'Block', exact: true })
    .click();
  await button(other, 'Unblock').first().waitFor();
  await other.keyboard.press('Escape');
  await other.getByText('You blocked this person.').waitFor();
  await shot(other, 'blocked');
  await page.getByText('You can’t write to this person.').waitFor();
  await shot(page, 'closed');
  await other.goto(`${world.wire.url}/app#/settings`);
  await other
    .getByRole('listitem')
    .filter({ hasText: 'Alice' })
    .getByRole('button', { name: 'Unblock' })
    .click();
  await other.getByText('You have blocked nobody.').waitFor();
  await composer(page).waitFor();
  expect(world.faults()).toEqual([]);
});

test('when a person changes their name and avatar, other windows show the new name and the new avatar', async () => {
  const chat = await openChat();
  await app(alice, 'POST', `/api/chats/${chat}/messages`, { text: 'Hello Bob' });
  const group = await world.service.newGroup(bob, 'Walkers', [alice]);
  await app(alice, 'POST', `/api/chats/${group}/messages`, { text: 'Who walks today?' });
  const page = await world.open(alice, '#/settings');
  const [own, other] = [await world.open(alice, '#/settings'), await world.open(bob, `#/chat/${chat}`)];
  const profile = (window: Page) => window.locator('.own-profile');
  await page.getByLabel('First name').fill('');
  expect(await button(page, 'Save').isDisabled()).toBe(true);
  await page.getByLabel('First name').fill('Alicia');
  await page.getByLabel('Last name').fill('Bell');
  await shot(page, 'own-name');
  await button(page, 'Save').click();
  for (const window of [page, own]) await profile(window).getByText('Alicia Bell').waitFor();
  expect(await own.getByLabel('First name').inputValue()).toBe('Alicia');
  await other.locator('.chat-title', { hasText: 'Alicia Bell' }).waitFor();
  await row(other, 'Alicia Bell').waitFor();
  await page
    .getByLabel('Avatar')
    .setInputFiles({ name: 'alice.png', mimeType: 'image/png', buffer: png(320, 320) });
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  for (const window of [page, own]) await profile(window).locator('img').waitFor();
  await other.locator('.chat-title img').waitFor();
  await row(other, 'Alicia Bell').locator('img').waitFor();
  await shot(page, 'own-avatar');
  await other.goto(`${world.wire.url}/app#/chat/${group}`);
  const message = other.locator('.message', { hasText: 'Who walks today?' });
  await message.getByText('Alicia Bell').waitFor();
  await message.locator('img').waitFor();
  await shot(other, 'author');
  await button(other, 'About Walkers').click();
  const member = other.getByRole('dialog').getByRole('listitem').filter({ hasText: 'Alicia Bell' });
  await member.locator('img').waitFor();
  await other.goto(`${world.wire.url}/app#/chat/${chat}`);
  await other.locator('.chat-title img').waitFor();
  await button(page, 'Remove').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  for (const window of [page, own]) await profile(window).locator('img').waitFor({ state: 'detached' });
  await other.locator('.chat-title img').waitFor({ state: 'detached' });
  await other.goto(`${world.wire.url}/app#/chat/${group}`);
  await message.getByText('Alicia Bell').waitFor();
  await page.getByLabel('Last name').fill('');
  await button(page, 'Save').click();
  await message.getByText('Alicia', { exact: true }).waitFor();
  expect(world.faults()).toEqual([]);
});

test('a person chooses who may start a chat with them', async () => {
  const [page, other] = [
    await world.open(bob, '#/settings'),
    await world.open(alice, `#/person/${bob.username}`),
  ];
  await page.getByLabel('Who can start a chat with me').selectOption('Nobody');
  await expect.poll(async () => (await app(bob, 'GET', '/api/me')).start_chats).toBe('nobody');
  await page.getByRole('heading', { name: 'Blocked people' }).scrollIntoViewIfNeeded();
  await shot(page, 'settings');
  await button(other, 'Write a message').click();
  await other.getByText('You can’t write to this person.').waitFor();
});

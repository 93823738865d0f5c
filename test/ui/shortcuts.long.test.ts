/** Tests the keyboard shortcuts of the application. */
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let [harbour, lighthouse] = [0, 0];

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  alice = await service.newUser('alice');
  harbour = await service.newGroup(alice, 'Harbour');
  const about = { type: 'channel', title: 'Lighthouse' };
  lighthouse = (await resultOf(service.app(alice, 'POST', '/api/chats', about))).id;
  await resultOf(service.app(alice, 'POST', `/api/chats/${harbour}/messages`, { text: 'Who is in?' }));
});

const openChat = (page: Page) => new URL(page.url()).hash;

test('Ctrl+K opens a list of all chats, and typing, the arrow keys and Enter choose one', async () => {
  const page = await world.open(alice, `#/chat/${harbour}`);
  const dialog = page.getByRole('dialog', { name: 'Find a chat' });
  // The text field of the chat has the focus.
  await page.getByRole('textbox', { name: 'Message' }).fill('A draft?');
  await page.keyboard.press('Control+k');
  await dialog.getByRole('textbox').waitFor();
  await page.keyboard.type('light');
  await expect.poll(() => dialog.getByRole('listitem').count()).toBe(1);
  await page.keyboard.press('Enter');
  await expect.poll(() => openChat(page)).toBe(`#/chat/${lighthouse}`);
  await dialog.waitFor({ state: 'detached' });
  await page.keyboard.press('Control+k');
  await dialog.getByRole('listitem').first().waitFor();
  const names = await dialog.getByRole('listitem').locator('strong').allInnerTexts();
  for (let at = 0; at <= names.indexOf('Harbour'); at++) await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect.poll(() => openChat(page)).toBe(`#/chat/${harbour}`);
  await page.keyboard.press('Control+k');
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  expect(openChat(page)).toBe(`#/chat/${harbour}`);
  expect(world.faults()).toEqual([]);
});

test('a question mark outside of text fields opens the list of shortcuts', async () => {
  const page = await world.open(alice, '#/settings');
  const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await page.keyboard.press('?');
  await dialog.getByText('Ctrl+K').first().waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('searchbox').focus();
  await page.keyboard.press('?');
  expect(await page.getByRole('searchbox').inputValue()).toBe('?');
  expect(await dialog.count()).toBe(0);
});

test('Escape closes only the topmost panel, whichever element has the focus', async () => {
  const page = await world.open(alice, `#/chat/${harbour}`);
  await page.getByRole('log').getByText('Who is in?').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Reply' }).click();
  const reply = page.locator('.composer-context');
  await reply.waitFor();
  await page.getByRole('button', { name: 'Emoji' }).click();
  const panel = page.locator('.emoji-panel');
  await panel.waitFor();
  await page.keyboard.press('Control+k');
  const dialog = page.locator('dialog');
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  expect([await panel.count(), await reply.count()]).toEqual([1, 1]);
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
  expect(await reply.count()).toBe(1);
  await page.getByRole('log').focus();
  await page.keyboard.press('Escape');
  await reply.waitFor({ state: 'detached' });
});

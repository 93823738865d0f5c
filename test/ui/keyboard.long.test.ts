/**
 * Tests the application with the keyboard alone. The focus moves to a panel that opens, and returns when the panel
 * closes.
 */
import { expect, test, vi } from 'vitest';
import { resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let group = 0;
let channel = 0;

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  alice = await service.newUser('alice');
  group = await service.newGroup(alice, 'Harbour');
  channel = (await resultOf(service.app(alice, 'POST', '/api/chats', { type: 'channel', title: 'Tides' })))
    .id;
  await resultOf(service.app(alice, 'POST', `/api/chats/${channel}/messages`, { text: 'High water at six' }));
});

test('when a person opens a page, the page gets the focus, so that Tab does not go through the list of chats', async () => {
  const page = await world.open(alice);
  await page.getByRole('link', { name: 'Settings' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Settings' }).waitFor();
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('MAIN');
  await page.keyboard.press('Tab');
  await page.locator('main :focus').waitFor();
  await page.getByRole('link', { name: 'My bots' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'New bot' }).waitFor();
  await page.keyboard.press('Tab');
  await page.locator('main :focus').waitFor();
  expect(world.faults()).toEqual([]);
});

test.each(['Escape', 'Tab', 'Enter'])(
  'the button that opened the emoji picker gets the focus back after %s',
  async (key) => {
    const page = await world.open(alice, `#/chat/${channel}`);
    const add = page.getByRole('button', { name: 'Add a reaction' });
    await add.focus();
    await page.keyboard.press('Enter');
    const field = page.getByRole('searchbox', { name: 'Search emoji' });
    await field.waitFor();
    await page.keyboard.type('rocket');
    await page.locator('.emoji-panel [frimousse-emoji]:visible').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press(key);
    await field.waitFor({ state: 'detached' });
    await expect.poll(() => add.evaluate((button) => button === document.activeElement)).toBe(true);
    expect(world.faults()).toEqual([]);
  },
);

test('a public channel cannot be created without a username', async () => {
  const page = await world.open(alice);
  await page.getByRole('button', { name: 'New chat' }).click();
  const dialog = page.getByRole('dialog', { name: 'New chat' });
  await dialog.getByRole('radio', { name: 'Channel' }).check();
  await dialog.getByRole('textbox', { name: 'Title' }).fill('Harbour news');
  const create = dialog.getByRole('button', { name: 'Create' });
  expect(await create.isEnabled()).toBe(true);
  await dialog.getByRole('checkbox').check();
  expect(await create.isEnabled()).toBe(false);
  await dialog.getByRole('textbox', { name: 'Username' }).fill('harbour_news');
  await create.click();
  await page.getByRole('button', { name: 'About Harbour news' }).waitFor();
});

test('the text field keeps its whole text in sight when the window becomes narrower', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.fill('A text that needs one line in a wide window, and several lines in a narrow one.');
  await page.setViewportSize({ width: 320, height: 640 });
  await expect.poll(() => field.evaluate((area) => area.scrollHeight - area.clientHeight)).toBe(0);
});

test('the focus stays in the list of chats when a person archives, pins and unpins chats', async () => {
  const bob = await world.service.newUser('bob');
  for (const title of ['Pier', 'Quay', 'Reef']) await world.service.newGroup(bob, title);
  const page = await world.open(bob);
  const links = page.locator('.chat-row-box > .chat-row');
  const shown = () => links.evaluateAll((rows) => rows.map((row) => row.getAttribute('href')));
  /** Returns the address of the chat whose row has the focus. */
  const focused = () =>
    page.evaluate(() => {
      const at = document.activeElement;
      return (at?.closest('.chat-row-box')?.querySelector('a') ?? at)?.getAttribute('href');
    });
  /** Opens the menu of the row that has the focus, and chooses an item. */
  const choose = async (name: string) => {
    await page.locator('.chat-row-box:focus-within .chat-row-more').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('menu').waitFor();
    await page.getByRole('menuitem', { name, exact: true }).focus();
    await page.keyboard.press('Enter');
  };
  await expect.poll(shown).toHaveLength(3);
  const [first, , third] = await shown();
  await links.nth(1).focus();
  await choose('Archive');
  await expect.poll(shown).toEqual([first, third]);
  await expect.poll(focused).toBe(third);
  await choose('Pin');
  await expect.poll(shown).toEqual([third, first]);
  await expect.poll(focused).toBe(third);
  await choose('Unpin');
  await expect.poll(shown).toEqual([first, third]);
  await expect.poll(focused).toBe(third);
  await choose('Archive');
  await expect.poll(shown).toEqual([first]);
  await expect.poll(focused).toBe(first);
  await choose('Archive');
  await expect.poll(shown).toEqual([]);
  await expect.poll(focused).toBe('#/archive');
  expect(world.faults()).toEqual([]);
});

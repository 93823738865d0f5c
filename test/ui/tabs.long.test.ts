import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let group: number;

onSharedWorld(async (opened) => {
  world = opened;
  alice = await world.service.newUser('alice');
  group = await world.service.newGroup(alice, 'Harbour');
});

test('a chat can be opened in a new tab, and signing out in one tab signs out all tabs', async () => {
  const first = await world.open(alice);
  const context = first.context();
  const row = first.locator(`.chat-row[href="#/chat/${group}"]`);
  for (const how of [{ modifiers: ['Control' as const] }, { button: 'middle' as const }]) {
    const [opened] = await Promise.all([context.waitForEvent('page'), row.click(how)]);
    await opened.getByRole('log').waitFor();
    expect(opened.url()).toBe(`${world.wire.url}/app#/chat/${group}`);
    await opened.reload();
    await opened.getByRole('log').waitFor();
  }
  const typed = await context.newPage();
  await typed.goto(`${world.wire.url}/app`);
  await typed.getByRole('heading', { name: 'Chats' }).waitFor();
  expect(await typed.evaluate(() => JSON.stringify(localStorage))).not.toContain(alice.token);
  await first.goto(`${world.wire.url}/app#/settings`);
  const outdated = 'html[data-outdated]';
  for (const page of context.pages())
    await page.evaluate(() => document.documentElement.setAttribute('data-outdated', ''));
  await context.route('**/api/me/session', async (route) => {
    // Delays the sign-out. The pages must not show a sign-in form before they reload after the sign-out.
    await sleep(1_000);
    await route.continue();
  });
  await first.getByRole('button', { name: 'Sign out' }).click();
  for (const page of context.pages()) {
    await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
    expect(await page.locator(outdated).count()).toBe(0);
    expect(
      await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])),
    ).not.toContain(alice.token);
  }
  await typed.getByLabel('Your token').fill(alice.token);
  await typed.getByRole('button', { name: 'Sign in', exact: true }).click();
  for (const page of context.pages()) await page.getByRole('heading', { name: 'Chats' }).waitFor();
  expect(world.faults()).toEqual([]);
});

test('two browsers do not share a session', async () => {
  await world.open(alice);
  const other = await world.open(null, `#/chat/${group}`);
  await other.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
});

test("if a chat is read in one window, the person's other windows show no unread count for the chat", async () => {
  const { service } = world;
  const bob = await service.newUser('bob');
  const pier = await service.newGroup(alice, 'Pier', [bob]);
  const [reader, watcher] = [await world.open(alice), await world.open(alice)];
  for (const text of ['one', 'two'])
    await resultOf(service.app(bob, 'POST', `/api/chats/${pier}/messages`, { text }));
  const badge = watcher.locator(`.chat-row[href="#/chat/${pier}"] .badge`);
  await expect.poll(() => badge.innerText()).toMatch(/^2\b/);
  let loads = 0;
  watcher.on('request', (request) => {
    if (/\/api\/chats(\?|$)/.test(request.url())) loads += 1;
  });
  await reader.bringToFront();
  await reader.goto(`${world.wire.url}/app#/chat/${pier}`);
  await reader.getByRole('log').getByText('two').waitFor();
  await badge.waitFor({ state: 'detached' });
  await expect.poll(() => watcher.title()).toBe('Petrel');
  expect(loads).toBe(0);
  expect(world.faults()).toEqual([]);
});

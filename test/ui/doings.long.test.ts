/** Tests that people see what other people are doing in a chat, such as typing. */
import type { Page } from 'playwright-core';
import { beforeEach, expect, test, vi } from 'vitest';
import { resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bob: TestUser;
let carol: TestUser;

onSharedWorld((opened) => {
  world = opened;
});
beforeEach(async () => {
  const { service } = world;
  [alice, bob, carol] = (await Promise.all(
    ['Alice', 'Bob', 'Carol'].map((name) => service.newUser(name)),
  )) as [TestUser, TestUser, TestUser];
});

const subtitle = (page: Page) => page.locator('.chat-title small');
const composer = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const show = (who: TestUser, chat: number, action: string) =>
  resultOf(world.service.app(who, 'POST', `/api/chats/${chat}/action`, { action }));

test('a group shows who is typing, until the message arrives or some seconds have passed', async () => {
  const dave = await world.service.newUser('Dave');
  const group = await world.service.newGroup(alice, 'Walkers', [bob, carol, dave]);
  const [page, other] = [
    await world.open(alice, `#/chat/${group}`),
    await world.open(bob, `#/chat/${group}`),
  ];
  await composer(page).waitFor();
  await composer(other).pressSequentially('Hi');
  await expect.poll(() => subtitle(page).textContent()).toBe('Bob is typing…');
  await page.locator('.chat-row', { hasText: 'Bob is typing…' }).waitFor();
  await show(carol, group, 'typing');
  await expect.poll(() => subtitle(page).textContent()).toBe('Bob and Carol are typing…');
  await show(dave, group, 'typing');
  await expect.poll(() => subtitle(page).textContent()).toBe('3 people are typing…');
  await other.keyboard.press('Enter');
  await expect.poll(() => subtitle(page).textContent()).toBe('Carol and Dave are typing…');
  await expect.poll(() => subtitle(page).textContent()).toBe('Members: 4');
  expect(world.faults()).toEqual([]);
});

test('a chat of two people shows what the other person is doing', async () => {
  const { id } = await resultOf(world.service.app(alice, 'POST', `/api/people/${bob.username}/chat`, {}));
  const page = await world.open(alice, `#/chat/${id}`);
  await composer(page).waitFor();
  for (const [action, text] of [
    ['upload_photo', 'sending a photo…'],
    ['record_voice', 'recording a voice message…'],
    ['choose_sticker', 'typing…'],
  ] as const) {
    await show(bob, id, action);
    await expect.poll(() => subtitle(page).textContent()).toBe(text);
  }
});

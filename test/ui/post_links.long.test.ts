/** Tests the links to posts, and how people react to a post and see who reacted. */
import type { Locator, Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let [alice, bob] = [] as unknown as [TestUser, TestUser];

onSharedWorld(async (opened) => {
  world = opened;
  [alice, bob] = await Promise.all([world.service.newUser('alice'), world.service.newUser('bob')]);
});

interface NewPost {
  readonly channel: number;
  readonly id: number;
  readonly url: string;
}

async function newPost(text: string, more: object = {}): Promise<NewPost> {
  const { service, wire } = world;
  const params = { type: 'channel', title: 'Tides', ...more };
  const { id: channel } = await resultOf(service.app(alice, 'POST', '/api/chats', params));
  await resultOf(service.app(alice, 'POST', `/api/chats/${channel}/messages`, { text }));
  const [post] = (await resultOf(service.app(alice, 'GET', `/api/chats/${channel}/posts`))).items;
  return { channel, id: post.id, url: `${wire.url}/post/${post.external_id}` };
}

const react = async (user: TestUser, post: NewPost, emoji: string) => {
  const { status } = await world.service.app(user, 'POST', `/api/posts/${post.id}/reactions`, { emoji });
  expect(status).toBe(200);
};

/** Waits until an element no longer moves, and returns its position. */
async function boxOf(element: Locator) {
  await element.tap({ trial: true });
  const box = await element.boundingBox();
  if (box === null) throw new Error('the element is not visible');
  return box;
}

const clipboard = (page: Page) => page.evaluate(() => navigator.clipboard.readText());
const article = (page: Page, text: string) => page.getByRole('article').getByText(text);

test('a reader without an account and without scripts reads a post of a public channel', async () => {
  const { url } = await newPost('High water at noon');
  const page = await world.open(null, '', { javaScriptEnabled: false });
  await page.goto(url);
  await article(page, 'High water at noon').waitFor();
  expect(await page.title()).toBe('Tides');
});

test('a reader who signs in sees the post in the application', async () => {
  const { url } = await newPost('Low water at six');
  const page = await world.open(null);
  await page.goto(url);
  await article(page, 'Low water at six').waitFor();
  await page.getByRole('link', { name: 'Open in the application' }).click();
  await page.getByLabel('Your token').fill(bob.token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('main').getByRole('article').getByText('Low water at six').waitFor();
  await page.getByRole('link', { name: 'Open channel' }).click();
  await page.getByRole('button', { name: 'Join' }).waitFor();
  expect(world.faults()).toEqual([]);
});

test('“Copy link” copies an address that opens the post in a browser that is signed in', async () => {
  const { channel, url } = await newPost('Spring tide');
  const page = await world.open(alice, `#/chat/${channel}/posts`);
  await article(page, 'Spring tide').waitFor();
  await page.getByRole('button', { name: 'Copy link' }).click();
  await expect.poll(() => clipboard(page)).toBe(url);
  await page.evaluate(() => navigator.clipboard.writeText(''));
  await page.getByRole('link', { name: 'Chat', exact: true }).click();
  await page.getByRole('button', { name: 'Add a reaction' }).waitFor();
  await page.getByRole('log').getByText('Spring tide').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Copy link' }).click();
  await expect.poll(() => clipboard(page)).toBe(url);
  const tab = await page.context().newPage();
  await tab.goto(url);
  await tab.waitForURL(/\/app#\/post\//);
  await article(tab, 'Spring tide').waitFor();
  await tab.getByRole('link', { name: 'Open channel' }).click();
  await tab.getByRole('log').getByText('Spring tide').waitFor();
  expect(world.faults()).toEqual([]);
});

test('only a member sees a post of a private channel', async () => {
  const { url } = await newPost('Wreck at the pier', { private: true });
  const member = await world.open(alice);
  await member.goto(url);
  await article(member, 'Wreck at the pier').waitFor();
  const stranger = await world.open(bob);
  await stranger.goto(url);
  await stranger.getByText('This post does not exist, or you are not in its channel.').waitFor();
  const reader = await world.open(null);
  await reader.goto(url);
  await reader.getByRole('heading', { name: 'Post not found' }).waitFor();
  expect(await reader.getByText('Wreck').count()).toBe(0);
  await reader.getByRole('link', { name: 'Sign in' }).click();
  await reader.getByLabel('Your token').fill(alice.token);
  await reader.getByRole('button', { name: 'Sign in', exact: true }).click();
  await article(reader, 'Wreck at the pier').waitFor();
  expect(world.faults()).toEqual([]);
});

test('the list of people who reacted has a tab for each emoji', async () => {
  const post = await newPost('Neap tide');
  await react(alice, post, '🔥');
  await react(bob, post, '🔥');
  await react(bob, post, '🎉');
  const { service } = world;
  const listed = async () =>
    (await resultOf(service.app(alice, 'GET', `/api/posts/${post.id}/reactions`))).items.length;
  await expect.poll(listed).toBe(3);
  const page = await world.open(alice, `#/chat/${post.channel}/posts`);
  await page.getByRole('button', { name: 'Who reacted' }).click();
  const dialog = page.getByRole('dialog');
  const names = async () => (await dialog.locator('bdi').allTextContents()).sort();
  await expect.poll(names).toEqual(['alice', 'bob', 'bob']);
  await dialog.getByRole('button', { name: '🔥, 2' }).click();
  await expect.poll(names).toEqual(['alice', 'bob']);
  await dialog.getByRole('button', { name: '🎉, 1' }).click();
  await expect.poll(names).toEqual(['bob']);
  await dialog.getByRole('button', { name: 'All, 3' }).click();
  await expect.poll(names).toEqual(['alice', 'bob', 'bob']);
  expect(world.faults()).toEqual([]);
});

test('hovering over the reaction button or holding the button down shows the emoji that people use most', async () => {
  const post = await newPost('Ebb');
  await react(bob, post, '🦀');
  const page = await world.open(alice, `#/chat/${post.channel}/posts`);
  const add = page.getByRole('button', { name: 'Add a reaction' });
  const row = page.getByRole('group', { name: 'Add a reaction' });
  await add.hover();
  await expect
    .poll(() => row.getByRole('button').allTextContents())
    .toEqual(['🦀', '❤️', '👍', '🔥', '😂', '🎉']);
  await row.getByRole('button', { name: '👍' }).click();
  await page.getByRole('button', { name: '👍, 1' }).waitFor();
  await row.waitFor({ state: 'detached' });
  await add.hover();
  await row.waitFor();
  await page.mouse.move(5, 5);
  await row.waitFor({ state: 'detached' });
  await page.context().close();
  const size = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  const phone = await world.open(bob, '', size);
  await phone.goto(`${world.wire.url}/app#/chat/${post.channel}/posts`);
  const { x, y, width, height } = await boxOf(phone.getByRole('button', { name: 'Add a reaction' }));
  const touch = await phone.context().newCDPSession(phone);
  const touchPoints = [{ x: x + width / 2, y: y + height / 2 }];
  await touch.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints });
  await phone.getByRole('group', { name: 'Add a reaction' }).waitFor();
  await touch.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await phone.getByRole('button', { name: '🔥', exact: true }).tap();
  await phone.getByRole('button', { name: '🔥, 1' }).waitFor();
  expect(await phone.locator('.emoji-panel').count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

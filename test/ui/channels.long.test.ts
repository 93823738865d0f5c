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

async function newChat(params: object): Promise<number> {
  const { id } = await resultOf(world.service.app(alice, 'POST', '/api/chats', params));
  return id;
}

test('people who have not joined see the posts of a public channel, and only administrators see its subscribers', async () => {
  const { service } = world;
  const username = `news_${process.pid}`;
  const channel = await newChat({ type: 'channel', title: 'News', username });
  await resultOf(service.app(alice, 'PATCH', `/api/chats/${channel}`, { description: 'All about boats' }));
  await resultOf(service.app(alice, 'POST', `/api/chats/${channel}/messages`, { text: 'A new mast' }));
  const page = await world.open(bob);
  await page.getByRole('searchbox').fill(`@${username}`);
  await page.getByRole('searchbox').press('Enter');
  const main = page.getByRole('main');
  await main.getByText('All about boats').waitFor();
  await main.getByRole('article').getByText('A new mast').waitFor();
  await main.getByText('Members: 1').waitFor();
  expect(await page.locator(`.chat-row[href="#/chat/${channel}"]`).count()).toBe(0);
  await main.getByRole('button', { name: 'Join' }).click();
  await page.getByRole('log').getByText('A new mast').waitFor();
  await page.locator(`.chat-row[href="#/chat/${channel}"]`).waitFor();
  await page.getByRole('button', { name: 'About News' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Members: 2').waitFor();
  await dialog.getByText('All about boats').waitFor();
  expect(await dialog.getByRole('listitem').count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

test('a private channel shows nothing to a person who has not joined', async () => {
  const channel = await newChat({ type: 'channel', title: 'Secret', private: true });
  const page = await world.open(bob, `#/chat/${channel}`);
  await page.getByText('You are not in this chat yet.').waitFor();
  expect(await page.getByText('Secret').count()).toBe(0);
});

test('a deleted message disappears from the page of posts', async () => {
  const channel = await newChat({ type: 'channel', title: 'Tides' });
  const path = `/api/chats/${channel}/messages`;
  const write = (text: string) => resultOf(world.service.app(alice, 'POST', path, { text }));
  const { message_id } = await write('High at noon');
  await write('Low at six');
  const page = await world.open(alice, `#/chat/${channel}/posts`);
  await page.getByRole('article').getByText('High at noon').waitFor();
  await resultOf(world.service.app(alice, 'DELETE', `${path}/${message_id}`));
  await page.getByText('High at noon').waitFor({ state: 'detached' });
  await page.getByRole('article').getByText('Low at six').waitFor();
  expect(world.faults()).toEqual([]);
});

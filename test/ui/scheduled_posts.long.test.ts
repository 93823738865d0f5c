/** Tests how authors schedule posts of a channel in the application. */
import type { Page } from 'playwright-core';
import { beforeEach, expect, test, vi } from 'vitest';
import { png } from '../support/samples.js';
import { itemsOf, resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let channel: number;

onSharedWorld((opened) => {
  world = opened;
});
beforeEach(async () => {
  alice = await world.service.newUser('Alice');
  channel = (await app('POST', '/api/chats', { type: 'channel', title: 'News' })).id;
});

const app = (verb: string, path: string, body?: object) =>
  resultOf(world.service.app(alice, verb, path, body));
const listed = () => itemsOf(world.service.app(alice, 'GET', `/api/chats/${channel}/scheduled_posts`));
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true });
const composer = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const dialog = (page: Page) => page.getByRole('dialog', { name: 'Scheduled posts' });
const inHours = (hours: number) => Math.floor(Date.now() / 60_000) * 60 + hours * 3_600;
/** Returns the time in the format of a date field, as the window shows it. */
const fieldOf = (page: Page, seconds: number) =>
  page.evaluate((ms) => {
    const offset = new Date(ms).getTimezoneOffset() * 60_000;
    return new Date(ms - offset).toISOString().slice(0, 16);
  }, seconds * 1_000);

test('an author schedules the text in the composer, and changes, publishes and deletes scheduled posts in the list', async () => {
  const page = await world.open(alice, `#/chat/${channel}`);
  await composer(page).fill('The **first** post');
  await button(page, 'Scheduled posts').click();
  await dialog(page).getByText('The first post').waitFor();
  const at = inHours(30);
  await dialog(page)
    .getByLabel('Publish at')
    .fill(await fieldOf(page, at));
  await button(page, 'Schedule').click();
  await page.getByText(/^The post will be published: /).waitFor();
  expect(await listed()).toMatchObject([
    { text: 'The first post', entities: [{ type: 'bold', offset: 4, length: 5 }], publish_at: at },
  ]);
  await expect.poll(() => composer(page).inputValue()).toBe('');
  await app('POST', `/api/chats/${channel}/scheduled_posts`, {
    text: 'The second post',
    publish_at: inHours(40),
  });

  await button(page, 'Scheduled posts').click();
  const items = dialog(page).getByRole('listitem');
  await expect.poll(() => items.count()).toBe(2);
  await items
    .first()
    .getByRole('button', { name: /^Edit the post/ })
    .click();
  await items.first().getByLabel('Text of the post').fill('The *changed* post');
  await items
    .first()
    .getByLabel('Publish at')
    .fill(await fieldOf(page, inHours(50)));
  await items.first().getByRole('button', { name: 'Save' }).click();
  await expect
    .poll(() => items.allTextContents())
    .toEqual([expect.stringContaining('The second post'), expect.stringContaining('The *changed* post')]);
  await items
    .first()
    .getByRole('button', { name: /^Publish the post/ })
    .click();
  await expect.poll(() => items.count()).toBe(1);
  await items
    .first()
    .getByRole('button', { name: /^Delete the post/ })
    .click();
  await page
    .getByRole('dialog', { name: /^Delete the post/ })
    .getByRole('button', { name: 'Delete' })
    .click();
  await dialog(page).getByText('There are no scheduled posts.').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('log').getByText('The second post').waitFor();
  expect(await listed()).toEqual([]);
  expect(world.faults()).toEqual([]);
});

test('the list of scheduled posts follows changes in other windows', async () => {
  const page = await world.open(alice, `#/chat/${channel}`);
  await button(page, 'Scheduled posts').click();
  await dialog(page).getByText('There are no scheduled posts.').waitFor();
  const path = `/api/chats/${channel}/scheduled_posts`;
  const { id } = await app('POST', path, { text: 'From elsewhere', publish_at: inHours(2) });
  await dialog(page).getByText('From elsewhere').waitFor();
  await app('DELETE', `${path}/${id}`);
  await dialog(page).getByText('There are no scheduled posts.').waitFor();
});

test('an author schedules a photo with a caption and a document without a caption, and both are published', async () => {
  const page = await world.open(alice, `#/chat/${channel}`);
  const attach = (name: string, mimeType: string, buffer: Buffer) =>
    page.getByLabel('Attach files').last().setInputFiles([{ name, mimeType, buffer }]);
  const scheduleIt = async () => {
    await button(page, 'Schedule').click();
    await dialog(page).waitFor({ state: 'detached' });
  };
  await attach('snow.png', 'image/png', png(64, 48));
  await composer(page).fill('First **snow**');
  await button(page, 'Scheduled posts').click();
  await dialog(page).getByRole('img', { name: 'snow.png' }).waitFor();
  await scheduleIt();
  expect(await listed()).toMatchObject([{ text: 'First snow', media: { type: 'photo', width: 64 } }]);
  await expect.poll(() => page.getByRole('list', { name: 'Attached files' }).count()).toBe(0);
  await attach('paper.txt', 'text/plain', Buffer.from('plain text'));
  await button(page, 'Scheduled posts').click();
  await dialog(page).getByText('paper.txt').waitFor();
  await scheduleIt();

  await button(page, 'Scheduled posts').click();
  const items = dialog(page).getByRole('listitem');
  await expect.poll(() => items.count()).toBe(2);
  const shown = items.getByRole('img', { name: 'Photo' });
  await expect.poll(() => shown.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(64);
  await items.getByText('paper.txt').waitFor();
  await items
    .first()
    .getByRole('button', { name: /^Edit the post/ })
    .click();
  await items.first().getByLabel('Add a caption').fill('More snow');
  await items.first().getByRole('button', { name: 'Save' }).click();
  await items.first().getByText('More snow').waitFor();
  await shown.waitFor();
  await items
    .first()
    .getByRole('button', { name: /^Edit the post/ })
    .click();
  await items.first().getByLabel('Add a caption').fill('');
  await items.first().getByRole('button', { name: 'Save' }).click();
  await expect.poll(listed).toMatchObject([{ text: '', media: { type: 'photo' } }, {}]);
  for (const left of [1, 0]) {
    await items
      .first()
      .getByRole('button', { name: /^Publish the post/ })
      .click();
    await expect.poll(() => items.count()).toBe(left);
  }
  await page.keyboard.press('Escape');
  await page.getByRole('log').getByRole('button', { name: 'Open the picture' }).waitFor();
  await page.getByRole('log').getByText('paper.txt').waitFor();
  expect(world.faults()).toEqual([]);
});

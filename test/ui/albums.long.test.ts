/** Tests that an album looks and behaves like one message, in a chat and on the page of a channel. */
import type { Locator, Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { mp4, wav } from '../support/samples.js';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { picture, upload } from './gallery.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bot: TestBot;

onSharedWorld(async (opened) => {
  world = opened;
  alice = await world.service.newUser('alice');
  bot = await world.service.newBot(alice, 'albums');
});

const bytesOf = {
  photo: (n: number) => picture(36 * n, 90 + 30 * (n % 3), 120),
  video: async () => mp4(64, 48, 2),
  audio: async () => wav(1),
  document: async (n: number) => Buffer.from(`file ${n}`),
};

/** Sends an album. `captions` are the captions of its first items. */
async function sendAlbum(chat: number, kinds: ReadonlyArray<keyof typeof bytesOf>, captions: string[] = []) {
  const sent = await upload(
    world.service,
    bot,
    'sendMediaGroup',
    {
      chat_id: chat,
      media: kinds.map((type, i) => ({ type, media: `attach://p${i}`, caption: captions[i] ?? '' })),
    },
    Object.fromEntries(
      await Promise.all(
        kinds.map(async (type, i) => [`p${i}`, { bytes: await bytesOf[type](i), name: `${type} ${i + 1}` }]),
      ),
    ),
  );
  return (sent as unknown as Array<{ message_id: number }>).map(({ message_id }) => message_id);
}

const photos = (count: number) => Array<'photo'>(count).fill('photo');

/** Creates a group or channel of Alice in which the bot may post. */
async function newChat(type: 'group' | 'channel', title: string): Promise<number> {
  const { service } = world;
  const { id } = await resultOf(service.app(alice, 'POST', '/api/chats', { type, title }));
  const rights = type === 'channel' ? { can_post_messages: true } : {};
  await resultOf(
    service.app(alice, 'PUT', `/api/chats/${id}/members/${bot.id}`, { status: 'administrator', rights }),
  );
  return id;
}

const idsIn = async (chat: number): Promise<number[]> =>
  (await itemsOf(world.service.app(alice, 'GET', `/api/chats/${chat}/messages`))).map(
    ({ message_id }: { message_id: number }) => message_id,
  );

/** Returns the messages that show an album. */
const albumsOf = (page: Page): Locator =>
  page.getByRole('article').filter({ has: page.locator('.album, .media') });

/**
 * Returns two numbers for each album grid: the empty area in px², and by how many pixels the pictures in one row differ
 * in height.
 */
const holesOf = (page: Page) =>
  page.locator('.album').evaluateAll((grids) =>
    grids.map((grid) => {
      const own = grid.getBoundingClientRect();
      const rows = new Map<number, DOMRect[]>();
      for (const tile of grid.children) {
        const box = tile.getBoundingClientRect();
        rows.set(Math.round(box.top), [...(rows.get(Math.round(box.top)) ?? []), box]);
      }
      const wrong = [...rows.values()].filter((row) => {
        const heights = row.map(({ height }) => height);
        const [left, right] = [
          Math.min(...row.map((box) => box.left)),
          Math.max(...row.map((box) => box.right)),
        ];
        const gaps = row.length - 1;
        const filled = row.reduce((sum, { width }) => sum + width, 0) + gaps * 3;
        const isFull = Math.abs(left - own.left) < 2 && Math.abs(right - own.right) < 2;
        return (
          !isFull ||
          Math.abs(filled - own.width) > 3 ||
          Math.max(...heights) - Math.min(...heights) > 1 ||
          Math.min(...heights) < 40
        );
      });
      return { tiles: grid.children.length, wrong: wrong.length };
    }),
  );

test('the grid of an album with 2 to 10 items has no empty cell at any width from 320 to 1440 px', async () => {
  const channel = await newChat('channel', 'Shapes');
  for (let count = 2; count <= 10; count++)
    await sendAlbum(channel, count % 2 ? photos(count) : [...photos(count - 1), 'video']);
  const page = await world.open(alice);
  for (const at of ['', '/posts'])
    for (const width of [320, 390, 768, 1440]) {
      await page.setViewportSize({ width, height: 9_000 });
      await page.goto(`${world.wire.url}/app#/chat/${channel}${at}`);
      const seen = async () => (await holesOf(page)).sort((a, b) => a.tiles - b.tiles);
      await expect
        .poll(seen, { message: `${at} at ${width} px` })
        .toEqual(Array.from({ length: 9 }, (_, i) => ({ tiles: i + 2, wrong: 0 })));
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(beyond).toBeLessThanOrEqual(0);
    }
  expect(world.faults()).toEqual([]);
});

test('an album without a caption shows its time on the pictures, with no empty strip below them', async () => {
  await world.service.openChat(alice, bot);
  await sendAlbum(alice.id, photos(4));
  const page = await world.open(alice, `#/chat/${bot.id}`);
  const album = albumsOf(page).last();
  const [bubble, grid] = [album.locator('.bubble'), album.locator('.album')];
  await grid.waitFor();
  const bottom = async (one: Locator) => {
    const box = await one.boundingBox();
    return (box?.y ?? 0) + (box?.height ?? 0);
  };
  // Measures again, because the list may scroll between two measurements.
  await expect.poll(async () => (await bottom(bubble)) - (await bottom(grid))).toBeLessThan(8);
  expect(await album.getByRole('time').count()).toBe(1);
  await expect
    .poll(async () => (await bottom(album.getByRole('time'))) - (await bottom(grid)))
    .toBeLessThan(0);
});

test('in a channel, an album is one post with one set of reactions, and the chat shows the same set', async () => {
  const channel = await newChat('channel', 'Gallery');
  const ids = await sendAlbum(channel, photos(4), ['', 'The harbour at dawn']);
  // Sends 18 more posts. A page of posts has 20 messages, so the album begins on the second page.
  for (let i = 1; i <= 18; i++)
    await resultOf(world.service.app(alice, 'POST', `/api/chats/${channel}/messages`, { text: `post ${i}` }));
  const page = await world.open(alice, `#/chat/${channel}/posts`, {
    viewport: { width: 900, height: 9_000 },
  });
  const post = page.getByRole('region', { name: 'Posts' }).getByRole('article');
  await expect.poll(() => post.count()).toBe(19);
  const album = post.filter({ hasText: 'The harbour at dawn' });
  await expect.poll(() => album.getByRole('button', { name: 'Open the picture' }).count()).toBe(4);
  await album.getByRole('button', { name: '❤' }).click();
  const [first] = (await itemsOf(
    world.service.app(alice, 'GET', `/api/chats/${channel}/posts?before=${(ids[0] ?? 0) + 1}&limit=1`),
  )) as Array<{ id: number; liked_by_me: boolean }>;
  await expect
    .poll(
      async () => (await resultOf(world.service.app(alice, 'GET', `/api/posts/${first?.id}`))).liked_by_me,
    )
    .toBe(true);
  await page.goto(`${world.wire.url}/app#/chat/${channel}`);
  const message = albumsOf(page).filter({ hasText: 'The harbour at dawn' });
  await message.getByRole('button', { name: '❤', pressed: true }).waitFor();
  await expect.poll(() => message.getByRole('button', { name: 'Open the picture' }).count()).toBe(4);
  expect(world.faults()).toEqual([]);
});

test('an album is shown when all its items are loaded, even if it begins on an older page of history', async () => {
  const group = await newChat('channel', 'Pages');
  const ids = await sendAlbum(group, photos(4), ['Cut by a page']);
  for (let i = 1; i <= 48; i++)
    await resultOf(world.service.app(alice, 'POST', `/api/chats/${group}/messages`, { text: `line ${i}` }));
  const page = await world.open(alice);
  await page.route(/\/messages\?.*before=/, () => {});
  await page.goto(`${world.wire.url}/app#/chat/${group}`);
  const log = page.getByRole('log');
  await log.getByText('line 48').waitFor();
  // The older page of history never arrives, so the list shows only the messages after the album.
  await expect
    .poll(async () => {
      await log.evaluate((box) => box.scrollTo(0, 0));
      return log.getByText('line 1', { exact: true }).count();
    })
    .toBe(1);
  expect(await log.getByRole('button', { name: 'Open the picture' }).count()).toBe(0);
  await page.unroute(/\/messages\?.*before=/);
  await page.reload();
  await log.getByText('line 48').waitFor();
  await expect
    .poll(async () => {
      await log.evaluate((box) => box.scrollTo(0, 0));
      return log.getByRole('button', { name: 'Open the picture' }).count();
    })
    .toBe(4);
  await albumsOf(page).getByRole('button', { name: 'Open the picture' }).first().waitFor();
  expect(await log.locator(`[data-id="${ids[0]}"]`).count()).toBe(1);
});

test('files and sounds of an album form one list, with each caption below its own file', async () => {
  const group = await newChat('group', 'Papers');
  await sendAlbum(group, ['document', 'document', 'document'], ['First page', '', 'Last page']);
  await sendAlbum(group, ['audio', 'audio'], ['Both sides']);
  const page = await world.open(alice, `#/chat/${group}`);
  const [papers, sounds] = [albumsOf(page).first(), albumsOf(page).last()];
  await sounds.getByText('Both sides').waitFor();
  expect(await albumsOf(page).count()).toBe(2);
  const lines = (await papers.innerText()).split('\n').filter((line) => /document|page/.test(line));
  expect(lines).toEqual(['document 1', 'First page', 'document 2', 'document 3', 'Last page']);
  expect(await papers.getByRole('time').count()).toBe(1);
});

test('a person replies to, pins, forwards or deletes an album as a whole', async () => {
  const group = await newChat('group', 'Whole');
  const target = await newChat('group', 'Target');
  const before = await idsIn(group);
  const ids = await sendAlbum(group, photos(5), ['', '', 'Middle caption']);
  const page = await world.open(alice, `#/chat/${group}`);
  const album = albumsOf(page).last();
  const choose = async (name: string) => {
    await album.getByRole('button', { name: 'Open the picture' }).nth(1).click({ button: 'right' });
    await page.getByRole('menuitem', { name, exact: true }).click();
  };
  await choose('Reply');
  await page.getByRole('textbox', { name: 'Message' }).fill('Which boat is it?');
  await page.keyboard.press('Enter');
  const answer = page.getByRole('log').getByRole('article').filter({ hasText: 'Which boat is it?' });
  await answer.getByText('Middle caption').waitFor();
  await choose('Pin');
  await page.locator('.pinned').waitFor();
  await album.getByRole('button', { name: 'Open the picture' }).last().click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Unpin', exact: true }).click();
  await page.locator('.pinned').waitFor({ state: 'detached' });
  await choose('Forward');
  await page.getByRole('dialog').getByText('Target').click();
  await expect.poll(async () => (await idsIn(target)).length).toBeGreaterThanOrEqual(5);
  await choose('Delete');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await album.waitFor({ state: 'detached' });
  await expect
    .poll(async () => (await idsIn(group)).filter((id) => before.includes(id) || ids.includes(id)))
    .toEqual(before);
  expect(world.faults()).toEqual([]);
});

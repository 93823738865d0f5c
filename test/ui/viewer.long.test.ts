/** Tests the viewer of pictures and videos. */
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { mp4, png } from '../support/samples.js';
import { resultOf, type TestBot, type TestUser } from '../support/service.js';
import { upload } from './gallery.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bot: TestBot;

/** Sends a picture. The width of a picture identifies it. */
const sendPicture = (width: number, fields: Record<string, unknown> = {}) =>
  upload(
    world.service,
    bot,
    'sendPhoto',
    { chat_id: alice.id, ...fields },
    { photo: { bytes: png(width, 200), name: 'p.png' } },
  );

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  alice = await service.newUser('alice');
  bot = await service.newBot(alice, 'viewer');
  await service.openChat(alice, bot);
  await sendPicture(301, { caption: 'The harbour' });
  await resultOf(service.bot(bot, 'sendPhoto', { chat_id: alice.id, photo: 'https://far.example/p.jpg' }));
  await upload(
    service,
    bot,
    'sendMediaGroup',
    { chat_id: alice.id, media: [302, 303].map((n) => ({ type: 'photo', media: `attach://p${n}` })) },
    Object.fromEntries([302, 303].map((n) => [`p${n}`, { bytes: png(n, 200), name: 'p.png' }])),
  );
  await sendPicture(304, { has_spoiler: true });
  const video = { bytes: mp4(64, 48, 2), name: 'boat.mp4' };
  await upload(service, bot, 'sendVideo', { chat_id: alice.id }, { video });
  await sendPicture(305);
});

const dialog = (page: Page) => page.getByRole('dialog');
const image = (page: Page) => dialog(page).locator('.viewer-stage img');
const widthOf = (page: Page) => image(page).evaluate((img: HTMLImageElement) => img.naturalWidth);
const pictures = (page: Page) => page.getByRole('log').getByRole('button', { name: 'Open the picture' });
const place = (page: Page, text: string) => dialog(page).getByText(text, { exact: true }).waitFor();

async function openViewer(width = 1_200) {
  const page = await world.open(alice, `#/chat/${bot.id}`);
  await page.setViewportSize({ width, height: 2_400 });
  await expect.poll(() => pictures(page).count()).toBe(4);
  await pictures(page).first().click();
  await place(page, '1 / 5');
  return page;
}

test('the arrow keys show each picture and video, except hidden media and media on other hosts', async () => {
  const page = await openViewer();
  await dialog(page).getByText('The harbour').waitFor();
  await expect.poll(() => widthOf(page)).toBe(301);
  await page.keyboard.press('ArrowLeft');
  await place(page, '1 / 5');
  for (const [at, width] of [
    [2, 302],
    [3, 303],
  ]) {
    await page.keyboard.press('ArrowRight');
    await place(page, `${at} / 5`);
    await expect.poll(() => widthOf(page)).toBe(width);
  }
  expect(await dialog(page).getByText('The harbour').count()).toBe(0);
  await dialog(page).getByRole('button', { name: 'Next' }).click();
  await page.getByRole('dialog', { name: 'Video' }).waitFor();
  expect(await dialog(page).getByRole('button', { name: 'Zoom in' }).count()).toBe(0);
  await dialog(page).getByRole('button', { name: 'Next' }).click();
  await place(page, '5 / 5');
  await expect.poll(() => widthOf(page)).toBe(305);
  // At the last picture, the button Next disappears together with its focus, but the arrow keys still work.
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowLeft');
  await place(page, '4 / 5');
  expect(world.faults()).toEqual([]);
});

test('the focus stays in the viewer, and Escape moves the focus back to the picture in the chat', async () => {
  const page = await openViewer();
  const inside = () =>
    page.evaluate(() => {
      const { activeElement: focused } = document;
      return focused === document.body || focused?.closest('dialog') !== null;
    });
  for (let i = 0; i < 8; i++) {
    await page.keyboard.press('Tab');
    expect(await inside()).toBe(true);
  }
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'detached' });
  const first = pictures(page).first();
  await expect.poll(() => first.evaluate((button) => button === document.activeElement)).toBe(true);
  await first.press('Enter');
  await dialog(page).getByRole('button', { name: 'Close' }).click();
  await expect.poll(() => first.evaluate((button) => button === document.activeElement)).toBe(true);
});

/** Returns the scale of the picture and the offset of its centre from the centre of the viewer. */
const shownOf = (page: Page) =>
  image(page).evaluate((img: HTMLImageElement) => {
    const { left, top, width, height } = img.getBoundingClientRect();
    const stage = (img.parentElement as HTMLElement).getBoundingClientRect();
    const round = (n: number) => Math.round(n * 100) / 100;
    return {
      scale: round(width / img.offsetWidth),
      x: Math.round(left + width / 2 - stage.left - stage.width / 2),
      y: Math.round(top + height / 2 - stage.top - stage.height / 2),
    };
  });

test('a double click, the wheel and keys zoom, a drag moves the picture, and the next picture is shown in full', async () => {
  const page = await openViewer(400);
  await expect.poll(() => shownOf(page)).toEqual({ scale: 1, x: 0, y: 0 });
  await image(page).dblclick();
  await expect.poll(async () => (await shownOf(page)).scale).toBe(2.5);
  const box = await image(page).boundingBox();
  if (!box) throw new Error('no picture');
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 60, y, { steps: 4 });
  await page.mouse.up();
  await expect.poll(async () => (await shownOf(page)).x).toBe(60);
  // The picture cannot be moved away from the edge of the window.
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 390, y, { steps: 4 });
  await page.mouse.up();
  await expect.poll(async () => (await shownOf(page)).x).toBe(Math.round((301 * 2.5 - 400) / 2));
  await place(page, '1 / 5');
  await page.keyboard.press('0');
  await expect.poll(() => shownOf(page)).toEqual({ scale: 1, x: 0, y: 0 });
  await page.keyboard.press('+');
  await expect.poll(async () => (await shownOf(page)).scale).toBe(1.5);
  await page.keyboard.press('-');
  await expect.poll(async () => (await shownOf(page)).scale).toBe(1);
  await page.mouse.move(x, y);
  await page.mouse.wheel(0, -400);
  await expect.poll(async () => (await shownOf(page)).scale).toBe(2.72);
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => widthOf(page)).toBe(302);
  await expect.poll(() => shownOf(page)).toEqual({ scale: 1, x: 0, y: 0 });
});

test('on a phone, a swipe shows the next picture, and a pinch zooms', async () => {
  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  const page = await world.open(alice, '', phone);
  await page.goto(`${world.wire.url}/app#/chat/${bot.id}`);
  // Finds the picture by its message. Pictures load in any order, so the last picture on the page may belong to an
  // earlier message.
  const newest = page.getByRole('log').locator('article').last();
  await newest.getByRole('button', { name: 'Open the picture' }).tap();
  await place(page, '5 / 5');
  const devtools = await page.context().newCDPSession(page);
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...points: Array<[number, number]>) =>
    devtools.send('Input.dispatchTouchEvent', {
      type,
      touchPoints: points.map(([x, y], id) => ({ x, y, id })),
    });
  const swipe = async (from: number, to: number) => {
    await touch('touchStart', [from, 400]);
    for (const part of [0.5, 1]) await touch('touchMove', [from + (to - from) * part, 405]);
    await touch('touchEnd');
  };
  await swipe(80, 300);
  await page.getByRole('dialog', { name: 'Video' }).waitFor();
  await swipe(300, 80);
  await place(page, '5 / 5');
  await expect.poll(() => widthOf(page)).toBe(305);
  await touch('touchStart', [170, 400], [220, 400]);
  await touch('touchMove', [145, 400], [245, 400]);
  await touch('touchEnd');
  await expect.poll(async () => (await shownOf(page)).scale).toBe(2);
  await place(page, '5 / 5');
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
});

test('the viewer saves a picture under a name with its file type', async () => {
  const page = await openViewer();
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    dialog(page).getByRole('button', { name: 'Download' }).click(),
  ]);
  expect(saved.suggestedFilename()).toBe('Photo.png');
});

test('a click on a video opens it in the viewer, and a click beside a picture closes the viewer', async () => {
  const page = await openViewer();
  await page.mouse.click(30, 1_200);
  await dialog(page).waitFor({ state: 'detached' });
  await page
    .getByRole('log')
    .getByRole('button', { name: /boat\.mp4|0:02/ })
    .click();
  await page.getByRole('dialog', { name: 'Video' }).waitFor();
  await place(page, '4 / 5');
});

/**
 * Tests how messages, the notes at the bottom of the page and the emoji search look and behave on desktops and phones.
 */
import { expect, test, vi } from 'vitest';
import { resultOf, type TestBot, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let [alice, bob] = [] as unknown as [TestUser, TestUser];
let bot: TestBot;
let group: number;

const post = (user: TestUser, chat: number, text: string) =>
  resultOf(world.service.app(user, 'POST', `/api/chats/${chat}/messages`, { text }));

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  bot = await service.newBot(alice, 'owned');
  group = await service.newGroup(alice, 'Harbour', [bob]);
});

test('the emoji search shows the emoji with the exact name first', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  await page.getByRole('button', { name: 'Emoji' }).click();
  for (const [word, emoji] of [
    ['fire', '🔥'],
    ['bird', '🐦️'],
    ['Cat', '🐈️'],
  ]) {
    await page.getByRole('searchbox', { name: 'Search emoji' }).fill(word as string);
    await expect
      .poll(async () => (await page.getByRole('gridcell').first().textContent())?.replace('\ufe0f', ''))
      .toBe(emoji?.replace('\ufe0f', ''));
  }
  await page.getByRole('searchbox', { name: 'Search emoji' }).fill('fire');
  await expect.poll(() => page.getByRole('gridcell').first().textContent()).toBe('🔥');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('🔥');
  expect(world.faults()).toEqual([]);
});

test('right-to-left text is aligned to the right, and in a group, messages from other people have an avatar', async () => {
  await post(bob, group, 'A long line from left to right, so that the bubble is wide\nabc');
  await post(bob, group, 'שורה ארוכה מאוד מימין לשמאל, כדי שהבועה תהיה רחבה\nשלום');
  await post(alice, group, 'mine');
  const page = await world.open(alice, `#/chat/${group}`);
  const article = (text: string) => page.getByRole('log').getByRole('article').filter({ hasText: text });
  await article('שלום').waitFor();
  const sideOf = (text: string) =>
    article(text)
      .locator('.words')
      .evaluate((words) => {
        const range = document.createRange();
        const node = words.querySelector('.text')?.firstChild as Text;
        range.setStart(node, node.data.indexOf('\n') + 1);
        range.setEnd(node, node.data.length);
        const [line, box] = [range.getBoundingClientRect(), words.getBoundingClientRect()];
        return box.right - line.right < line.left - box.left ? 'right' : 'left';
      });
  expect([await sideOf('abc'), await sideOf('שלום')]).toEqual(['left', 'right']);
  expect(await article('abc').locator('.face').innerText()).toBe('B');
  expect(await article('mine').locator('.face').count()).toBe(0);
  const [first, second] = await Promise.all(
    ['abc', 'שלום'].map((text) => article(text).locator('.bubble').boundingBox()),
  );
  expect(first?.x).toBe(second?.x);
  expect(world.faults()).toEqual([]);
});

test('on a phone, a long press opens the menu of a message, and messages show no menu button', async () => {
  await post(bob, group, 'press me');
  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  const page = await world.open(alice, '', phone);
  await page.goto(`${world.wire.url}/app#/chat/${group}`);
  const message = page.getByRole('log').getByRole('article').filter({ hasText: 'press me' });
  const more = message.getByRole('button', { name: 'Actions' });
  await message.waitFor();
  expect((await more.boundingBox())?.width).toBeLessThanOrEqual(1);
  const box = await message.locator('.bubble').boundingBox();
  const at = { x: (box?.x ?? 0) + 20, y: (box?.y ?? 0) + 10 };
  const session = await page.context().newCDPSession(page);
  await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [at] });
  await page.getByRole('menuitem', { name: 'Copy text' }).waitFor();
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await page.getByRole('menuitem', { name: 'Copy text' }).waitFor();
});

test('after a transfer, a note at the bottom of the page names the bot and its new owner', async () => {
  const page = await world.open(alice, `#/bots/${bot.id}/transfer`);
  await page.getByLabel('Username of the new owner').fill(bob.username);
  await page.getByRole('button', { name: 'Transfer', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox').fill(bot.username);
  await dialog.getByRole('button', { name: 'Transfer' }).click();
  const note = page.getByRole('status').getByText(`@${bot.username} now belongs to @${bob.username}.`);
  // Reads the position of the note in the step that waits for the note, because the note disappears after some seconds.
  expect((await note.boundingBox())?.y).toBeGreaterThan(400);
  expect(world.faults()).toEqual([]);
});

test('an unsent reply is stored in the browser without the contents of the quoted message', async () => {
  const { message_id } = await post(bob, group, 'a secret of bob');
  const page = await world.open(alice, `#/chat/${group}`);
  await page.route('**/messages', (route) =>
    route.request().method() === 'POST' ? undefined : route.continue(),
  );
  await page.getByRole('log').getByText('a secret of bob').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Reply' }).click();
  await page.getByRole('textbox', { name: 'Message' }).fill('understood');
  await page.keyboard.press('Enter');
  const stored = () =>
    page.evaluate(
      (name) =>
        new Promise<unknown[]>((resolve) => {
          const opening = indexedDB.open(name);
          opening.onsuccess = () => {
            const rows = opening.result.transaction('outbox').objectStore('outbox').getAll();
            rows.onsuccess = () => resolve(rows.result);
          };
        }),
      `petrel-${alice.id}`,
    );
  await expect.poll(stored).toMatchObject([{ text: 'understood', replyTo: { message_id } }]);
  expect(JSON.stringify(await stored())).not.toContain('secret');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.reload();
  const sent = page.getByRole('log').locator('article').filter({ hasText: 'understood' });
  await sent.getByText('a secret of bob').waitFor();
});

test('a chat still opens if the code of the suggestions and of the drop zone cannot be loaded', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  const refused: string[] = [];
  await page.route(/\/app\/assets\/(suggestions|drop_zone)/, (route) => {
    refused.push(route.request().url());
    return route.abort();
  });
  await page.reload();
  await expect.poll(() => refused.length).toBe(2);
  expect(await page.getByRole('alert').count()).toBe(0);
});

test('if the code of a page cannot be loaded, the page shows a button that loads the code again', async () => {
  const page = await world.open(alice);
  await page.route('**/app/**/*.js', (route) => route.abort());
  await page.evaluate(() => {
    location.hash = '#/settings';
  });
  await page.getByRole('alert').getByText('This part could not be loaded.').waitFor();
  // The list of chats still works.
  await page.getByRole('heading', { name: 'Chats' }).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
});

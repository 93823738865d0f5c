/**
 * Tests cards, dialogs and lists of the web application. The short form of the browser tests leaves these tests out.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bot, InputFile } from 'grammy';
import { afterAll, expect, test, vi } from 'vitest';
import { mp4, png } from '../support/samples.js';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { type Cast, createCast } from './cast.js';
import { onSharedWorld, type World } from './world.js';

// Allows two minutes for each test, because a busy machine draws pages slowly.
vi.setConfig({ testTimeout: 120_000 });

let world: World;
let cast: Cast;
let alice: TestUser;
let bob: TestUser;
let made: TestBot;
let bot: Bot;

onSharedWorld(async (opened) => {
  world = opened;
  cast = await createCast(world);
  ({ alice, bob, made, bot } = cast);
});
afterAll(() => bot?.stop());

test('a button that replaces a pressed button does not look pressed', async () => {
  await world.service.openChat(alice, made);
  const page = await world.open(alice, `#/chat/${made.id}`);
  await page.getByRole('textbox', { name: 'Message' }).fill('/steps ');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Next', exact: true }).click();
  const erase = page.locator('.key', { hasText: 'Erase' }).last();
  await erase.waitFor();
  await expect.poll(() => erase.getAttribute('class')).toBe('key');
  for (const width of [768, 390, 320]) {
    await page.setViewportSize({ width, height: 800 });
    const [keyboard, list] = await Promise.all([
      page.locator('.keyboard').last().boundingBox(),
      page.getByRole('log').boundingBox(),
    ]);
    expect(keyboard).toMatchObject({ width: expect.any(Number) });
    expect((keyboard?.x ?? 0) + (keyboard?.width ?? 0)).toBeLessThanOrEqual(
      (list?.x ?? 0) + (list?.width ?? 0),
    );
    // Checks that no word is broken across lines. With a broken word, the text of a button would be taller than one
    // line.
    const [height, line] = await page
      .locator('.key span', { hasText: 'Preferences' })
      .first()
      .evaluate((span) => [
        span.getBoundingClientRect().height,
        Number.parseFloat(getComputedStyle(span).lineHeight),
      ]);
    expect([width, (height ?? 0) / (line ?? 1)]).toEqual([width, expect.closeTo(1, 0)]);
  }
  expect(world.faults()).toEqual([]);
});

test('the card of a live location shows each move and the end of the location', async () => {
  const at = { chat_id: alice.id, latitude: 52.52, longitude: 13.405 };
  const sent = await resultOf(world.service.bot(made, 'sendLocation', { ...at, live_period: 600 }));
  const place = { chat_id: alice.id, message_id: sent.message_id };
  const page = await cast.openAtEnd(alice, made.id);
  const card = (name: RegExp) => page.getByRole('log').getByRole('link', { name }).last();
  await card(/^Live location 52.52000, 13.40500 Until /).waitFor();
  const moved = { ...place, latitude: 52.6, longitude: 13.5 };
  await resultOf(world.service.bot(made, 'editMessageLiveLocation', moved));
  await card(/^Live location 52.60000, 13.50000 Until /).waitFor();
  expect(await card(/^Live location/).getAttribute('href')).toContain('mlat=52.6&mlon=13.5');
  const stopped = async () => (await world.service.bot(made, 'stopMessageLiveLocation', place)).status;
  await expect.poll(stopped).toBe(200);
  await card(/^Live location ended 52.60000, 13.50000$/).waitFor();
  // When the period of the live location ends, the card changes even though the browser receives no event.
  const short = await resultOf(world.service.bot(made, 'sendLocation', { ...at, live_period: 60 }));
  await card(/^Live location 52.52000, 13.40500 Until /).waitFor();
  await page.clock.install({ time: (short.date + 3_600) * 1000 });
  await page.reload();
  await card(/^Live location ended 52.52000, 13.40500$/).waitFor();
  expect(world.faults()).toEqual([]);
});

test('a die is shown large, and a video note is shown as a circle', async () => {
  await world.service.openChat(alice, made);
  await bot.api.sendVideoNote(alice.id, new InputFile(mp4(240, 240, 7), 'v.mp4'));
  const { dice } = await bot.api.sendDice(alice.id, '🎯');
  const title = `🎯 ${dice.value}`;
  const page = await cast.openAtEnd(alice, made.id);
  const log = page.getByRole('log');
  await log.getByRole('img', { name: title }).waitFor();
  const note = log.getByRole('button', { name: /Video message/ });
  expect(await note.evaluate((button) => getComputedStyle(button).borderRadius)).toBe('50%');
  expect(await note.boundingBox()).toMatchObject({ width: 240, height: 240 });
  await page.getByRole('navigation').getByText(title).first().waitFor();
  expect(world.faults()).toEqual([]);
});

test('the menu button of a bot opens a Web App, which gets the id of the person', async () => {
  await world.service.openChat(alice, made);
  const menu_button = {
    type: 'web_app',
    text: 'Open the shop',
    web_app: { url: 'https://menu.example/' },
  } as const;
  await bot.api.setChatMenuButton({ chat_id: alice.id, menu_button });
  const page = await cast.openAtEnd(alice, made.id);
  await page.context().route('https://menu.example/**', (route) =>
    route.fulfill({
      contentType: 'text/html',
      body: `<p></p><script>
        const data = new URLSearchParams(new URLSearchParams(location.hash.slice(1)).get('tgWebAppData'));
        document.querySelector('p').textContent = 'Hello ' + JSON.parse(data.get('user')).id;
      </script>`,
    }),
  );
  await page.getByRole('button', { name: 'Open the shop' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Open', exact: true }).click();
  await page.frameLocator('iframe').getByText(`Hello ${alice.id}`).waitFor();
  expect(world.faults()).toEqual([]);
  await bot.api.setChatMenuButton({ chat_id: alice.id });
});

test('a thumbnail is shown for a video that is not loaded', async () => {
  await world.service.openChat(alice, made);
  const thumbnail = () => new InputFile(png(320, 180), 't.png');
  await bot.api.sendVideo(alice.id, new InputFile(mp4(320, 180, 7), 'v.mp4'), { thumbnail: thumbnail() });
  const report = new InputFile(Buffer.from('report'), 'report.txt');
  await bot.api.sendDocument(alice.id, report, { thumbnail: thumbnail() });
  const page = await cast.openAtEnd(alice, made.id);
  for (const name of [/0:07/, /report\.txt/]) {
    const image = page.getByRole('log').getByRole('button', { name }).locator('img');
    await expect.poll(() => image.evaluate((img: HTMLImageElement) => img.naturalWidth)).toBe(320);
  }
  expect(world.faults()).toEqual([]);
});

test('each dangerous action asks for confirmation', async () => {
  const page = await world.open(alice, `#/bots/${made.id}/transfer`);
  const dialog = page.getByRole('dialog');
  await page.getByLabel('Username of the new owner').fill('bob');
  await page.getByRole('button', { name: 'Transfer', exact: true }).click();
  await dialog.getByRole('textbox').fill(made.username);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Delete the bot' }).click();
  await expect.poll(() => dialog.getByRole('textbox').inputValue()).toBe('');
  await expect.poll(() => dialog.getByRole('button', { name: 'Delete the bot' }).isDisabled()).toBe(true);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.goto(`${world.wire.url}/app#/bots/${made.id}/webhook`);
  await page.getByText('No dead letters.').waitFor();
  await page.goto(`${world.wire.url}/app#/`);
  const search = page.getByRole('searchbox');
  await search.fill(`@${bob.username}`);
  await search.press('Enter');
  await page.getByRole('button', { name: 'Write a message' }).waitFor();
  expect(await page.getByText('Nobody has the name').count()).toBe(0);
  await search.fill('@nobody_at_all');
  await search.press('Enter');
  await page.getByText('Nobody has the name').waitFor();
  expect(world.faults()).toEqual([]);
});

test('a forwarded message names the original sender', async () => {
  const { service } = world;
  const [from, to] = [
    await service.newGroup(alice, 'Kitchen', [bob, made]),
    await service.newGroup(alice, 'Cellar', [bob]),
  ];
  await resultOf(service.app(bob, 'POST', `/api/chats/${from}/messages`, { text: 'Salt the soup' }));
  const [a, b] = await Promise.all([world.open(alice, `#/chat/${from}`), world.open(bob, `#/chat/${to}`)]);
  const menu = (text: string) =>
    a.getByRole('log').getByText(text, { exact: true }).click({ button: 'right' });
  await menu('Salt the soup');
  await a.getByRole('menuitem', { name: 'Forward' }).click();
  const dialog = a.getByRole('dialog', { name: 'Forward to' });
  await dialog.getByLabel('Find a chat').fill('cell');
  await expect.poll(() => dialog.getByRole('listitem').count()).toBe(1);
  await dialog.getByRole('button', { name: 'Cellar' }).click();
  await a.getByText('Forwarded to Cellar').waitFor();
  await dialog.waitFor({ state: 'detached' });
  const bubble = b.locator('article', { hasText: 'Salt the soup' });
  await bubble.getByText('Forwarded from bob').waitFor();
  await expect.poll(() => bubble.getAttribute('aria-label')).toBe('alice');
  const [copy] = await itemsOf(service.app(bob, 'GET', `/api/chats/${to}/messages`));
  expect(copy.forward_origin).toMatchObject({ type: 'user', sender_user: { id: bob.id } });
  await resultOf(
    service.bot(made, 'sendMessage', { chat_id: from, text: 'Kept here', protect_content: true }),
  );
  await a
    .locator('article', { hasText: 'Kept here' })
    .getByText('Can’t be forwarded')
    .waitFor({ state: 'attached' });
  await menu('Kept here');
  await a.getByRole('menuitem', { name: 'Reply' }).waitFor();
  expect(await a.getByRole('menuitem', { name: 'Forward' }).count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

test('in the Armenian interface, Armenian words find emoji', async () => {
  const { service, wire } = world;
  const group = await service.newGroup(bob, 'Lobby', []);
  const page = await world.open(bob, `#/chat/${group}`);
  await resultOf(service.app(bob, 'PATCH', '/api/me', { language_code: 'hy' }));
  await page.reload();
  await page.getByRole('button', { name: 'Էմոջի', exact: true }).click();
  const panel = page.locator('.emoji-panel');
  await panel.getByText('Ժպիտներ և զգացմունքներ').waitFor();
  await panel.getByRole('searchbox').fill('կրակ');
  await panel.getByRole('gridcell', { name: 'Կրակ', exact: true }).click();
  await expect.poll(() => page.getByRole('textbox', { name: 'Հաղորդագրություն' }).inputValue()).toBe('🔥');
  await page.goto(`${wire.url}/app#/bots/new`);
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox').nth(0).fill('Echo');
  await dialog.getByRole('textbox').nth(1).fill(made.username);
  await page.keyboard.press('Enter');
  await dialog.getByRole('alert').getByText('Այս օգտանունը զբաղված է։').waitFor();
  await resultOf(service.app(bob, 'PATCH', '/api/me', { language_code: 'en' }));
  expect(world.faults()).toEqual([]);
});

test('the settings show the size of the stored files', async () => {
  const { service } = world;
  const eve = await service.newUser('eve');
  const page = await world.open(eve, '#/settings');
  const card = page.locator('.card', { hasText: 'Files stored by you and your bots' });
  await expect.poll(() => card.textContent()).toMatch(/0 B \/ 100 GB$/);
});

test('the chat list loads more pages while a person scrolls or searches', async () => {
  const { service } = world;
  const gus = await service.newUser('gus');
  await service.newGroup(gus, 'The very first');
  // Chats whose latest messages were sent in the same second are ordered by id.
  await sleep(1_100);
  for (let n = 0; n < 60; n++) await service.newGroup(gus, `Group ${n}`);
  const page = await world.open(gus);
  const list = page.locator('.chat-rows');
  // Chats without messages are sorted by the time when the person joined, newest first.
  await page.locator('.chat-row').first().waitFor();
  expect(await page.locator('.chat-row', { hasText: 'The very first' }).count()).toBe(0);
  await expect
    .poll(async () => {
      await list.evaluate((box) => box.scrollTo(0, box.scrollHeight));
      return page.locator('.chat-row', { hasText: 'The very first' }).count();
    })
    .toBe(1);
  await page.reload();
  await page.getByRole('searchbox').fill('The very');
  await page.locator('.chat-row', { hasText: 'The very first' }).waitFor();
});

/** Tests the short form of the browser tests: two people and a grammY bot, each shown live in the other's window. */
import { rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Bot, InlineKeyboard, InputFile } from 'grammy';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { demoKeyPath } from '../../src/config/config.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { openAnywhere } from '../support/cluster.js';
import { ageQueue } from '../support/queues.js';
import { createFront } from '../support/role_process.js';
import { mp4, png } from '../support/samples.js';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { startHook, startWorld, type World } from './world.js';

// A busy machine draws pages slowly.
vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bob: TestUser;
let made: TestBot;
let bot: Bot;

const demo = join(tmpdir(), `petrel-short-${process.pid}.json`);

beforeAll(async () => {
  world = await startWorld({ DEMO_FILE: demo }, { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  made = await service.newBot(alice, 'echo');
  // A front closes connections that are idle for 8 s, and a call on such a connection can fail.
  const agent = new Agent({ keepAlive: true, timeout: 4_000 });
  bot = new Bot(made.token, { client: { apiRoot: service.fronts[0].url, baseFetchConfig: { agent } } });
  bot.command('start', (ctx) =>
    ctx.reply('Welcome', { reply_markup: new InlineKeyboard().text('Press', 'pressed') }),
  );
  bot.callbackQuery('pressed', async (ctx) => {
    await ctx.answerCallbackQuery({ text: 'Well done' });
    await ctx.editMessageText('You pressed it');
  });
  bot.hears('pin it', async (ctx) => {
    const { message_id } = await ctx.reply('To be kept');
    await ctx.api.pinChatMessage(ctx.chat.id, message_id);
  });
  bot.command('steps', (ctx) =>
    ctx.reply('Step 1', { reply_markup: new InlineKeyboard().text('Next', 'next') }),
  );
  bot.callbackQuery('next', async (ctx) => {
    await ctx.answerCallbackQuery();
    const row = new InlineKeyboard().text('Erase', 'erase').text('Another').text('Preferences');
    await ctx.editMessageText('Step 2', { reply_markup: row });
  });
  void bot.start();
});

/** Opens a chat at its end. A chat with unread messages opens at the first of them. */
async function openAtEnd(user: TestUser, chat: number) {
  const path = `/api/chats/${chat}`;
  const [last] = await itemsOf(world.service.app(user, 'GET', `${path}/messages?limit=1`));
  await resultOf(world.service.app(user, 'POST', `${path}/read`, { message_id: last.message_id }));
  return world.open(user, `#/chat/${chat}`);
}

afterAll(async () => {
  await bot?.stop();
  await world?.stop();
  rmSync(demo, { force: true });
});

test('the demo link works in one browser only, and each window there can sign in as a demo person', async () => {
  const users = { [alice.username]: alice, [bob.username]: bob };
  writeFileSync(demo, JSON.stringify({ users }));
  writeFileSync(demoKeyPath(demo), 'short-key');
  const offer = (user: TestUser) => ({ name: `Sign in as ${user.username}` });
  const page = await world.open(null);
  await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
  expect(await page.getByRole('button', offer(alice)).count()).toBe(0);
  await page.goto('about:blank');
  await page.goto(`${world.wire.url}/app#/demo/short-key`);
  await page.getByRole('button', offer(alice)).click();
  await page.locator('.app .main').waitFor({ state: 'attached' });
  expect(page.url()).not.toContain('short-key');
  const second = await page.context().newPage();
  await second.goto(`${world.wire.url}/app`);
  await second.getByRole('button', offer(bob)).click();
  await second.locator('.app .main').waitFor({ state: 'attached' });
  const stranger = await world.open(null);
  await stranger.goto('about:blank');
  await stranger.goto(`${world.wire.url}/app#/demo/short-key`);
  await stranger.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
  expect(await stranger.getByRole('button', offer(alice)).count()).toBe(0);
  for (const one of [page, stranger]) await one.context().close();
});

test('a direct chat with a bot shows its start screen, buttons, edits and pins', async () => {
  const page = await world.open(alice);
  await page.getByRole('searchbox').fill(`@${made.username}`);
  await page.getByRole('searchbox').press('Enter');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByRole('button', { name: 'Press' }).click();
  await page.getByText('Well done').waitFor();
  await page.getByRole('log').getByText('You pressed it').waitFor();
  await page.getByRole('combobox', { name: 'Message' }).fill('pin it');
  await page.keyboard.press('Enter');
  await page.locator('.pinned').getByText('To be kept').waitFor();
  await expect.poll(() => page.getByRole('log').getByText('pin it', { exact: true }).count()).toBe(1);
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test('a button that takes the place of a pressed button does not look pressed', async () => {
  await world.service.openChat(alice, made);
  const page = await world.open(alice, `#/chat/${made.id}`);
  await page.getByRole('combobox', { name: 'Message' }).fill('/steps ');
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
    // If a word were broken, the text of a button would be taller than one line.
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
  await page.context().close();
});

test('locations, venues and contacts are shown as cards that open the map or the phone', async () => {
  await world.service.openChat(alice, made);
  const at = { chat_id: alice.id, latitude: 52.52, longitude: 13.405 };
  await resultOf(world.service.bot(made, 'sendLocation', at));
  await resultOf(world.service.bot(made, 'sendVenue', { ...at, title: 'Tower', address: 'Square 1' }));
  const contact = { chat_id: alice.id, phone_number: '+49 30 123', first_name: 'Eve', last_name: 'Ng' };
  await resultOf(world.service.bot(made, 'sendContact', contact));
  const page = await openAtEnd(alice, made.id);
  const map = 'https://www.openstreetmap.org/?mlat=52.52&mlon=13.405#map=16/52.52/13.405';
  for (const [name, href] of [
    ['Location 52.52000, 13.40500', map],
    ['Tower Square 1', map],
    ['Eve Ng +49 30 123', 'tel:+4930123'],
  ]) {
    const card = page.getByRole('log').getByRole('link', { name: name as string });
    expect(await card.getAttribute('href')).toBe(href);
  }
  await page.getByRole('navigation').getByText('Eve Ng').waitFor();
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test('the card of a live location follows the moves and shows that the location ended', async () => {
  const at = { chat_id: alice.id, latitude: 52.52, longitude: 13.405 };
  const sent = await resultOf(world.service.bot(made, 'sendLocation', { ...at, live_period: 600 }));
  const place = { chat_id: alice.id, message_id: sent.message_id };
  const page = await openAtEnd(alice, made.id);
  const card = (name: RegExp) => page.getByRole('log').getByRole('link', { name }).last();
  await card(/^Live location 52.52000, 13.40500 Until /).waitFor();
  const moved = { ...place, latitude: 52.6, longitude: 13.5 };
  await resultOf(world.service.bot(made, 'editMessageLiveLocation', moved));
  await card(/^Live location 52.60000, 13.50000 Until /).waitFor();
  expect(await card(/^Live location/).getAttribute('href')).toContain('mlat=52.6&mlon=13.5');
  const stopped = async () => (await world.service.bot(made, 'stopMessageLiveLocation', place)).status;
  await expect.poll(stopped).toBe(200);
  await card(/^Live location ended 52.60000, 13.50000$/).waitFor();
  // The card shows the end of the period without any event.
  const short = await resultOf(world.service.bot(made, 'sendLocation', { ...at, live_period: 60 }));
  await card(/^Live location 52.52000, 13.40500 Until /).waitFor();
  await page.clock.install({ time: (short.date + 3_600) * 1000 });
  await page.reload();
  await card(/^Live location ended 52.52000, 13.40500$/).waitFor();
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test('a dice is shown large, and a video note as a circle', async () => {
  await world.service.openChat(alice, made);
  await bot.api.sendVideoNote(alice.id, new InputFile(mp4(240, 240, 7), 'v.mp4'));
  const { dice } = await bot.api.sendDice(alice.id, '🎯');
  const title = `🎯 ${dice.value}`;
  const page = await openAtEnd(alice, made.id);
  const log = page.getByRole('log');
  await log.getByRole('img', { name: title }).waitFor();
  const note = log.getByRole('button', { name: /Video message/ });
  expect(await note.evaluate((button) => getComputedStyle(button).borderRadius)).toBe('50%');
  expect(await note.boundingBox()).toMatchObject({ width: 240, height: 240 });
  await page.getByRole('navigation').getByText(title).first().waitFor();
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test('people vote in polls, retract their votes, and see the answer of a quiz', async () => {
  await world.service.openChat(alice, made);
  const group = await world.service.newGroup(alice, 'Voters', [bob, made]);
  const send = (question: string, options: string[], more = {}) =>
    bot.api.sendPoll(group, question, options, more);
  await send('Which day?', ['Monday', 'Tuesday'], { allows_multiple_answers: true, is_anonymous: false });
  await send('Two and two?', ['Three', 'Four'], {
    ...{
      type: 'quiz',
      correct_option_ids: [1],
      explanation: 'Count <b>again</b>',
      explanation_parse_mode: 'HTML',
    },
  });
  const pages = [
    await world.open(alice, `#/chat/${group}`),
    await world.open(bob, `#/chat/${group}`),
  ] as const;
  const [of, ofBob] = pages.map(
    (page) => (name: string) => page.getByRole('log').getByRole('group', { name }),
  );
  const [days, sum] = [of?.('Which day?'), of?.('Two and two?')];
  if (!days || !sum || !ofBob) throw new Error('no polls');
  await days.getByText('The bot sees who chose what').waitFor();
  const voting = days.getByRole('button', { name: 'Vote' });
  expect(await voting.isDisabled()).toBe(true);
  for (const name of ['Monday', 'Tuesday']) await days.getByRole('button', { name }).click();
  expect(await days.getByRole('button', { name: 'Monday', pressed: true }).count()).toBe(1);
  await voting.click();
  await days.getByText('Voters: 1').waitFor();
  expect(await days.getByRole('listitem').allTextContents()).toEqual([
    '100%Monday Your vote',
    '100%Tuesday Your vote',
  ]);
  await days.getByRole('button', { name: 'Retract vote' }).click();
  await days.getByText('Voters: 0').waitFor();
  await days.getByRole('button', { name: 'Monday' }).waitFor();

  await sum.getByRole('button', { name: 'Three' }).click();
  await sum.getByText('Count again').waitFor();
  expect(await sum.getByRole('listitem').allTextContents()).toEqual([
    '100%Three Wrong answer',
    '0%Four Correct answer',
  ]);
  expect(await sum.getByRole('button').count()).toBe(0);
  await ofBob('Two and two?').getByRole('button', { name: 'Four' }).click();
  await sum.getByText('Voters: 2').waitFor();
  expect(await sum.getByRole('listitem').allTextContents()).toEqual([
    '50%Three Wrong answer',
    '50%Four Correct answer',
  ]);
  await pages[0].getByRole('navigation').getByText('Two and two?').waitFor();
  expect(world.faults()).toEqual([]);
  for (const page of pages) await page.context().close();
});

test('the menu button of a bot opens a Web App that knows the person', async () => {
  await world.service.openChat(alice, made);
  const menu_button = {
    type: 'web_app',
    text: 'Open the shop',
    web_app: { url: 'https://menu.example/' },
  } as const;
  await bot.api.setChatMenuButton({ chat_id: alice.id, menu_button });
  const page = await openAtEnd(alice, made.id);
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
  await page.context().close();
  await bot.api.setChatMenuButton({ chat_id: alice.id });
});

test('a thumbnail is shown for a video that is not loaded', async () => {
  await world.service.openChat(alice, made);
  const thumbnail = () => new InputFile(png(320, 180), 't.png');
  await bot.api.sendVideo(alice.id, new InputFile(mp4(320, 180, 7), 'v.mp4'), { thumbnail: thumbnail() });
  const report = new InputFile(Buffer.from('report'), 'report.txt');
  await bot.api.sendDocument(alice.id, report, { thumbnail: thumbnail() });
  const page = await openAtEnd(alice, made.id);
  for (const name of [/0:07/, /report\.txt/]) {
    const image = page.getByRole('log').getByRole('button', { name }).locator('img');
    await expect.poll(() => image.evaluate((img: HTMLImageElement) => img.naturalWidth)).toBe(320);
  }
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test('a button can open a Web App that knows the person, copy a text, or write a query into the composer', async () => {
  await world.service.openChat(alice, made);
  const inline_keyboard = [
    [{ text: 'Shop', web_app: { url: 'https://shop.example/start' } }],
    [{ text: 'Copy the code', copy_text: { text: 'code-42' }, style: 'primary' }],
    [{ text: 'Search cats', switch_inline_query_current_chat: 'cats', style: 'danger' }],
  ];
  const menu = { chat_id: alice.id, text: 'Menu', reply_markup: { inline_keyboard } };
  await resultOf(world.service.bot(made, 'sendMessage', menu));
  const page = await openAtEnd(alice, made.id);
  await page.context().route('https://shop.example/**', (route) =>
    route.fulfill({
      contentType: 'text/html',
      body: `<button>Pay</button><script>
        const data = new URLSearchParams(new URLSearchParams(location.hash.slice(1)).get('tgWebAppData'));
        const button = document.querySelector('button');
        button.textContent = 'Pay as ' + JSON.parse(data.get('user')).id;
        const close = JSON.stringify({ eventType: 'web_app_close' });
        button.onclick = () => parent.postMessage(close, '*');
      </script>`,
    }),
  );
  await page.getByRole('button', { name: 'Shop' }).click();
  await page.getByText('shop.example gets your name').waitFor();
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  const frame = page.frameLocator('iframe');
  await frame.getByRole('button', { name: `Pay as ${alice.id}` }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const copying = page.getByRole('button', { name: 'Copy the code' });
  await copying.hover();
  const [color, background] = await copying.evaluate(async (key) => {
    await Promise.all(key.getAnimations().map(({ finished }) => finished));
    const shown = getComputedStyle(key);
    return [shown.color, shown.backgroundColor];
  });
  expect(background).not.toBe(color);
  await copying.click();
  await page.getByText('Copied').waitFor();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe('code-42');
  await page.getByRole('button', { name: 'Search cats' }).click();
  const composer = page.getByRole('combobox', { name: 'Message' });
  await expect.poll(() => composer.inputValue()).toBe(`@${made.username} cats`);
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test('a reply is sent only once, and messages written offline keep their order', async () => {
  const { service } = world;
  const group = await service.newGroup(alice, 'Tunnel', [bob]);
  await resultOf(service.app(bob, 'POST', `/api/chats/${group}/messages`, { text: 'Where are you?' }));
  const page = await world.open(alice, `#/chat/${group}`);
  const field = page.getByRole('combobox', { name: 'Message' });
  const texts = async () =>
    (await resultOf(service.app(bob, 'GET', `/api/chats/${group}/messages`))).items
      .flatMap(({ text }: { text?: string }) => text ?? [])
      .reverse();
  await page.getByRole('log').getByText('Where are you?').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Reply' }).click();
  await field.fill('In a tunnel');
  await page.keyboard.press('Enter');
  await page.locator('.quote', { hasText: 'Where are you?' }).waitFor();
  await expect.poll(() => field.inputValue()).toBe('');
  await page.keyboard.press('Enter');
  await page.route('**/messages', (route) => route.abort());
  await field.fill('one');
  await page.keyboard.press('Enter');
  await page.getByRole('log').getByText('one', { exact: true }).waitFor();
  await page.getByRole('log').getByRole('button', { name: 'Try again' }).waitFor();
  await page.unroute('**/messages');
  await field.fill('two');
  await page.keyboard.press('Enter');
  await expect.poll(texts, { timeout: 20_000 }).toEqual(['Where are you?', 'In a tunnel', 'one', 'two']);
  expect(world.faults()).toEqual([]);
  await page.context().close();
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
  await page.getByText(`@${bob.username} is a person.`).waitFor();
  expect(await page.getByText('Nobody has the name').count()).toBe(0);
  await search.fill('@nobody_at_all');
  await search.press('Enter');
  await page.getByText('Nobody has the name').waitFor();
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test("members of a group see each other's messages, replies, edits and deletions", async () => {
  const { service } = world;
  const group = await service.newGroup(alice, 'Hike', [bob]);
  const [a, b] = await Promise.all([
    world.open(alice, `#/chat/${group}`),
    world.open(bob, `#/chat/${group}`),
  ]);
  const write = async (page: typeof a, text: string) => {
    await page.getByRole('combobox', { name: 'Message' }).fill(text);
    await page.keyboard.press('Enter');
  };
  const menu = async (page: typeof a, text: string, item: string) => {
    await page.getByRole('log').getByText(text, { exact: true }).last().click({ button: 'right' });
    await page.getByRole('menuitem', { name: item }).click();
  };
  await write(a, 'Who comes?');
  await menu(b, 'Who comes?', 'Reply');
  await write(b, 'I do');
  await a.locator('.quote', { hasText: 'Who comes?' }).waitFor();
  await menu(b, 'I do', 'Edit');
  await write(b, 'I do, with tea');
  const bubble = a.locator('article', { hasText: 'I do, with tea' });
  await bubble.getByText('edited').waitFor();
  await menu(b, 'I do, with tea', 'Delete');
  await b.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await bubble.waitFor({ state: 'detached' });
  await menu(a, 'Who comes?', 'Pin');
  await b.locator('.pinned').getByText('Who comes?').waitFor();
  await b.getByRole('log').getByText('pinned').waitFor();
  const unread = async () => (await resultOf(service.app(bob, 'GET', `/api/chats/${group}`))).unread_count;
  await expect.poll(unread).toBeUndefined();
  // Messages in a chat that is not in view count as unread until they are read, even after a reload.
  let load = () => {};
  const held = new Promise<void>((resolve) => {
    load = resolve;
  });
  await b.route(/settings.*\.js/, (asked) => held.then(() => asked.continue()));
  await b.goto(`${world.wire.url}/app#/settings`);
  await b.getByRole('log').waitFor({ state: 'detached' });
  await write(a, 'one');
  await write(a, 'two');
  await b.getByText('2 unread', { exact: true }).waitFor({ state: 'attached' });
  load();
  await b.getByRole('heading', { name: 'Settings' }).waitFor();
  await b.reload();
  await b.getByText('2 unread', { exact: true }).waitFor({ state: 'attached' });
  await b.getByRole('link', { name: /Hike/ }).click();
  await b.getByText('2 unread', { exact: true }).waitFor({ state: 'detached' });
  await expect.poll(unread).toBeUndefined();
  expect(world.faults()).toEqual([]);
  await Promise.all([a.context().close(), b.context().close()]);
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
  await Promise.all([a.context().close(), b.context().close()]);
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
  await expect.poll(() => page.getByRole('combobox').inputValue()).toBe('🔥');
  await page.goto(`${wire.url}/app#/bots/new`);
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox').nth(0).fill('Echo');
  await dialog.getByRole('textbox').nth(1).fill(made.username);
  await page.keyboard.press('Enter');
  await dialog.getByRole('alert').getByText('Այս օգտանունը զբաղված է։').waitFor();
  await resultOf(service.app(bob, 'PATCH', '/api/me', { language_code: 'en' }));
  expect(world.faults()).toEqual([]);
  await page.context().close();
});

test('a post shows the same reaction counts on its page and in the chat', async () => {
  const { service } = world;
  const about = { type: 'channel', title: 'News', username: `news_${Date.now()}` };
  const channel = await resultOf(service.app(alice, 'POST', '/api/chats', about));
  await resultOf(service.app(bob, 'POST', `/api/chats/${channel.id}/join`));
  await resultOf(service.app(alice, 'POST', `/api/chats/${channel.id}/messages`, { text: 'First snow' }));
  const [a, b] = await Promise.all([
    world.open(alice, `#/chat/${channel.id}/posts`),
    world.open(bob, `#/chat/${channel.id}`),
  ]);
  const heart = (page: typeof a, n: number) => page.getByRole('button', { name: `❤, ${n}`, exact: true });
  await heart(a, 0).click();
  await heart(b, 1).click();
  await heart(a, 2).waitFor();
  await heart(b, 2).waitFor();
  await expect.poll(() => heart(a, 2).getAttribute('aria-pressed')).toBe('true');
  await heart(a, 2).click();
  await heart(b, 1).waitFor();
  await b.getByRole('button', { name: 'Add a reaction' }).click();
  await b.getByRole('searchbox', { name: 'Search emoji' }).fill('fire');
  await b.getByRole('gridcell', { name: /^fire$/i }).click();
  await a.getByRole('button', { name: '🔥, 1', exact: true }).waitFor();
  await expect
    .poll(async () => {
      await a.getByRole('button', { name: 'Who reacted' }).click();
      const people = a.getByRole('dialog').getByRole('listitem');
      await people.or(a.getByText('Nobody has reacted')).first().waitFor();
      const names = await people.allInnerTexts();
      await a.keyboard.press('Escape');
      return names.join();
    })
    .toContain('bob');
  expect(world.faults()).toEqual([]);
  await Promise.all([a.context().close(), b.context().close()]);
});

test('an operator sees the processes and replays dead letters', async () => {
  const { service, wire } = world;
  const second = await createFront(service.env, {});
  const starting = second.start();
  const hook = await startHook(500);
  const hooked = await service.newBot(alice, 'hooked');
  await service.openChat(alice, hooked);
  await ageQueue(service, hooked.id);
  await resultOf(service.bot(hooked, 'setWebhook', hook.settings));
  await resultOf(service.app(alice, 'POST', `/api/chats/${hooked.id}/messages`, { text: 'waits' }));
  const page = await world.open(null);
  await page.goto(`${wire.url}/ops`);
  const enter = async (token: string) => {
    await page.getByLabel("Operator's token").fill(token);
    await page.keyboard.press('Enter');
  };
  await enter(alice.token);
  await page.getByRole('alert').getByText('This token is not valid.').waitFor();
  await enter(service.adminToken);
  const bots = page.getByRole('region', { name: 'Bots that need attention, table' });
  const row = bots.getByRole('row', { name: `@${hooked.username}` });
  await row.getByText('500 Internal Server Error').waitFor();
  await page.getByLabel('Order of bots').selectOption('Most dead letters');
  await row.getByRole('button', { name: '1 dead letters' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('cell', { name: 'expired' }).waitFor();
  hook.status = 200;
  await dialog.getByRole('button', { name: 'Replay all' }).click();
  await dialog.getByRole('button', { name: 'Yes, replay all' }).click();
  await dialog
    .getByRole('status')
    .getByText(/^Update \d+ is queued again\.$/)
    .waitFor();
  await dialog.getByText('No dead letters.').waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(() => hook.taken.size, { timeout: 20_000 }).toBe(2);
  await starting;
  const processes = page.getByRole('region', { name: 'Processes, table' });
  await expect
    .poll(() => processes.getByRole('row', { name: /^front/ }).count(), { timeout: 15_000 })
    .toBe(2);
  await second.kill();
  const killed = processes.getByRole('row', { name: `· ${second.pid}` });
  const redis = openAnywhere(service.redis);
  const key = makeKeys(Number(service.env.PARTITIONS ?? 64)).nodes();
  /** Moves the last report of the killed process this many ms into the past. */
  const pass = async (ms: number) => {
    for (const [node, text] of Object.entries(await redis.hgetall(key)))
      if (text.includes(`"pid":${second.pid},`))
        await redis.hset(key, node, `${Number(text.split(' ', 1)) - ms}${text.slice(text.indexOf(' '))}`);
  };
  await pass(8_000);
  await killed.getByText(/silent for/).waitFor();
  await page.getByText(`front ${second.pid} on`).waitFor();
  await pass(30_000);
  await killed.waitFor({ state: 'detached' });
  redis.disconnect();
  // The page runs only scripts of its origin, and shows markup as text.
  const hit = await page.evaluate(() => {
    const script = document.createElement('script');
    const attempt = (act: () => void) => {
      try {
        act();
        return 'done';
      } catch {
        return 'refused';
      }
    };
    const found = [
      attempt(() => {
        script.textContent = 'window.hit = 1';
      }),
      attempt(() => {
        document.body.innerHTML = '<img src="x" onerror="window.hit = 1">';
      }),
    ];
    document.body.append(script);
    return [...found, (window as { hit?: number }).hit];
  });
  expect(hit).toEqual(['refused', 'refused', undefined]);
  expect(page.url()).not.toContain(service.adminToken);
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(service.adminToken);
  expect(world.faults().filter((fault) => !/Trusted/.test(fault))).toEqual([]);
  await page.context().close();
  await hook.close();
});

test('a person sets who may add them, accepts one invitation and declines another', async () => {
  const { service } = world;
  const [cleo, dan] = [await service.newUser('cleo'), await service.newUser('dan')];
  const page = await world.open(cleo, '#/settings');
  const choice = page.getByLabel('Who can add me to groups and channels');
  await choice.selectOption('Nobody');
  const chosen = async () => (await resultOf(service.app(cleo, 'GET', '/api/me'))).add_to_groups;
  await expect.poll(chosen).toBe('nobody');
  const [wanted, other] = [
    await service.newGroup(dan, 'Wanted', [cleo]),
    await service.newGroup(dan, 'Other', [cleo]),
  ];
  await page.goto(`${world.wire.url}/app#/`);
  await page.reload();
  const invitation = (title: string) => page.locator('.invitation', { hasText: title });
  await invitation('Wanted').getByRole('button', { name: 'Accept' }).click();
  await page.locator(`.chat-row[href="#/chat/${wanted}"]`).waitFor();
  await invitation('Other').getByRole('button', { name: 'Decline' }).click();
  await invitation('Other').waitFor({ state: 'detached' });
  await expect.poll(() => page.locator(`.chat-row[href="#/chat/${other}"]`).count()).toBe(0);
  await page.context().close();
});

test('an administrator creates an invite link and accepts a person who asks to join with it', async () => {
  const { service } = world;
  const group = await service.newGroup(alice, 'Harbour');
  const a = await world.open(alice, `#/chat/${group}`);
  const dialog = a.getByRole('dialog');
  const show = () => a.getByRole('button', { name: 'About Harbour' }).first().click();
  await show();
  await dialog.getByLabel('Name', { exact: true }).fill('Sailors');
  await dialog.getByLabel('Administrators approve each person').check();
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  await dialog.getByText('Sailors').waitFor();
  await dialog.getByRole('button', { name: 'Copy', exact: true }).click();
  await a.getByText('Copied').waitFor();
  const [{ invite_link }] = await itemsOf(service.app(alice, 'GET', `/api/chats/${group}/invite_links`));
  await expect.poll(() => a.evaluate(() => navigator.clipboard.readText())).toBe(invite_link);
  const b = await world.open(bob, new URL(invite_link).hash);
  await b.getByRole('heading', { name: 'Harbour' }).waitFor();
  await b.getByRole('button', { name: 'Ask to join' }).click();
  await b.getByText('An administrator will decide on your request.').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await show();
  const request = dialog.getByRole('listitem').filter({ hasText: 'bob' });
  await request.getByRole('button', { name: 'Accept' }).click();
  await request.getByText('member').waitFor();
  await b.reload();
  await b.getByRole('button', { name: 'Open chat' }).click();
  await b.getByRole('log').getByText('bob joined').waitFor();
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await a.getByRole('dialog', { name: 'Revoke' }).getByRole('button', { name: 'Revoke' }).click();
  await dialog.getByText('Sailors').waitFor({ state: 'detached' });
  const c = await world.open(await service.newUser('carol'), new URL(invite_link).hash);
  await c.getByText('This link no longer works.').waitFor();
  expect(world.faults()).toEqual([]);
  for (const page of [a, b, c]) await page.context().close();
});

test('the settings show the size of the stored files', async () => {
  const { service } = world;
  const eve = await service.newUser('eve');
  const page = await world.open(eve, '#/settings');
  const card = page.locator('.card', { hasText: 'Files stored by you and your bots' });
  await expect.poll(() => card.textContent()).toMatch(/0 B \/ 100 GB$/);
  await page.context().close();
});

test('the chat list loads more pages while a person scrolls or searches', async () => {
  const { service } = world;
  const gus = await service.newUser('gus');
  await service.newGroup(gus, 'The very first');
  // Chats with messages of the same second are ordered by id.
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
  await page.context().close();
});

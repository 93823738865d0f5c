/**
 * Runs the short form of the browser tests. Two people and a grammY bot use the application. The window of each person
 * shows immediately what the other person and the bot do. `cards.long.test.ts` tests further cards, dialogs and lists.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bot } from 'grammy';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { demoKeyPath } from '../../src/config/config.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { openAnywhere } from '../support/cluster.js';
import { ageQueue } from '../support/queues.js';
import { createFront } from '../support/role_process.js';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { longTest } from '../support/tiers.js';
import { type Cast, createCast } from './cast.js';
import { separateTests, startHook, startPages, startWorld, type World } from './world.js';

// Allows two minutes for each test, because a busy machine draws pages slowly.
vi.setConfig({ testTimeout: 120_000 });

let world: World;
let cast: Cast;
let pages: Awaited<ReturnType<typeof startPages>>;
let alice: TestUser;
let bob: TestUser;
let made: TestBot;
let bot: Bot;

const demo = join(tmpdir(), `petrel-short-${process.pid}.json`);

beforeAll(async () => {
  pages = await startPages((path) =>
    path === '/found'
      ? '<title>Two &lt;b&gt;valleys</title><meta name="description" content="A walk">'
      : null,
  );
  world = await startWorld({ DEMO_FILE: demo }, pages.env, true);
  cast = await createCast(world);
  ({ alice, bob, made, bot } = cast);
});

/** One window for each person, keyed by the id of the person. */
const windows = new Map<number, Page>();

/**
 * Opens a page of the application in the window of a person. A window costs more processor time than most tests, so all
 * tests share one window for each person.
 */
async function visit(user: TestUser, path: string): Promise<Page> {
  const page = windows.get(user.id);
  if (page) {
    await show(page, path);
    return page;
  }
  const opened = await world.open(user, path);
  world.keep(opened);
  windows.set(user.id, opened);
  return opened;
}

/**
 * Shows another page of the application without a reload. Resolves when the previous page is gone, because the previous
 * page may have a text field too.
 */
const show = (page: Page, path: string): Promise<void> =>
  page.evaluate(
    (hash) =>
      new Promise<void>((resolve) => {
        if (location.hash === hash) return resolve();
        // The application registered its listener for this event first, so it has already handled the event here.
        addEventListener('hashchange', () => resolve(), { once: true });
        location.hash = hash;
      }),
    path,
  );

/** Shows the end of a chat. A chat with unread messages would otherwise open at the first unread message. */
async function visitEnd(user: TestUser, chat: number): Promise<Page> {
  await cast.read(user, chat);
  return visit(user, `#/chat/${chat}`);
}

separateTests(() => world);
afterAll(async () => {
  await bot?.stop();
  await world?.stop();
  await pages?.close();
  rmSync(demo, { force: true });
});

longTest(
  'the demo link works in one browser only, and each window there can sign in as a demo person',
  async () => {
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
  },
);

test('a direct chat with a bot shows its start screen, buttons, edits and pins', async () => {
  const page = await visit(alice, '');
  await page.getByRole('searchbox').fill(`@${made.username}`);
  await page.getByRole('searchbox').press('Enter');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByRole('button', { name: 'Press' }).click();
  await page.getByText('Well done').waitFor();
  await page.getByRole('log').getByText('You pressed it').waitFor();
  await page.getByRole('textbox', { name: 'Message' }).fill('pin it');
  await page.keyboard.press('Enter');
  await page.locator('.pinned').getByText('To be kept').waitFor();
  await expect.poll(() => page.getByRole('log').getByText('pin it', { exact: true }).count()).toBe(1);
  expect(world.faults()).toEqual([]);
});

test('locations, venues and contacts are shown as cards that open the map or the phone', async () => {
  await world.service.openChat(alice, made);
  const at = { chat_id: alice.id, latitude: 52.52, longitude: 13.405 };
  await resultOf(world.service.bot(made, 'sendLocation', at));
  await resultOf(world.service.bot(made, 'sendVenue', { ...at, title: 'Tower', address: 'Square 1' }));
  const contact = { chat_id: alice.id, phone_number: '+49 30 123', first_name: 'Eve', last_name: 'Ng' };
  await resultOf(world.service.bot(made, 'sendContact', contact));
  const page = await visitEnd(alice, made.id);
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
});

test('code is coloured by a worker, and code without a known language has no colours', async () => {
  await world.service.openChat(alice, made);
  const page = await visitEnd(alice, made.id);
  const code = 'const a = "<b>1</b>"; // end';
  const write = (text: string, language?: string) =>
    bot.api.sendMessage(alice.id, text, {
      entities: [{ type: 'pre', offset: 0, length: text.length, ...(language && { language }) }],
    });
  await write(code);
  await write(code, 'unknown');
  const blocks = page.locator('.code-block pre');
  await expect.poll(() => blocks.count()).toBe(2);
  expect(page.workers()).toHaveLength(0);
  await write(code, 'JS');
  await blocks.last().locator('.in-keyword').getByText('const', { exact: true }).waitFor();
  expect(await blocks.last().locator('.in-string').textContent()).toBe('"<b>1</b>"');
  expect(await blocks.allTextContents()).toEqual([code, code, code]);
  expect(await page.locator('.code-block [class^="in-"]').count()).toBe(3);
  expect(page.workers()).toHaveLength(1);
  const heights = await page.locator('.code-block').evaluateAll((all) => all.map((one) => one.clientHeight));
  expect(new Set(heights).size).toBe(1);
  expect(world.faults()).toEqual([]);
});

test('a link shows a preview of its page, and nothing moves when the preview arrives', async () => {
  await world.service.openChat(alice, made);
  const page = await visitEnd(alice, made.id);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let asked = 0;
  let answered = 0;
  page.on('requestfinished', (request) => {
    if (request.url().endsWith('/link_preview')) answered++;
  });
  await page.route('**/link_preview', async (route) => {
    asked++;
    await held;
    await route.continue();
  });
  await bot.api.sendMessage(alice.id, 'No page: https://127.0.0.1:1/none', {
    link_preview_options: { is_disabled: true },
  });
  await bot.api.sendMessage(alice.id, `Look ${pages.url}/found`);
  await bot.api.sendMessage(alice.id, `Gone ${pages.url}/gone`);
  const log = page.getByRole('log');
  const cards = log.locator('.link-card');
  await expect.poll(() => asked).toBe(2);
  const places = () =>
    log
      .locator('article')
      .evaluateAll((all) => all.map((one) => JSON.stringify(one.getBoundingClientRect())));
  const before = await places();
  expect(await cards.count()).toBe(2);
  release();
  const card = log.getByRole('link', { name: 'Two <b>valleys' });
  await card.getByText('A walk').waitFor();
  expect(await card.getAttribute('href')).toBe(`${pages.url}/found`);
  expect(await places()).toEqual(before);
  await expect.poll(() => answered).toBe(2);
  // If a linked page has no title, the card of the link stays until the message is drawn again, so that the messages do
  // not move.
  await page.goto(`${world.wire.url}/app#/settings`);
  await log.waitFor({ state: 'detached' });
  await page.goto(`${world.wire.url}/app#/chat/${made.id}`);
  await card.waitFor();
  expect(await cards.count()).toBe(1);
  expect(asked).toBe(2);
  await page.unroute('**/link_preview');
  expect(world.faults()).toEqual([]);
});

longTest('people vote in polls, retract their votes, and see the answer of a quiz', async () => {
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
  const pages = [await visit(alice, `#/chat/${group}`), await visit(bob, `#/chat/${group}`)] as const;
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
});

longTest(
  'a button can open a Web App that knows the person, copy a text, or write a query into the composer',
  async () => {
    await world.service.openChat(alice, made);
    const inline_keyboard = [
      [{ text: 'Shop', web_app: { url: 'https://shop.example/start' } }],
      [{ text: 'Copy the code', copy_text: { text: 'code-42' }, style: 'primary' }],
      [{ text: 'Search cats', switch_inline_query_current_chat: 'cats', style: 'danger' }],
    ];
    const menu = { chat_id: alice.id, text: 'Menu', reply_markup: { inline_keyboard } };
    await resultOf(world.service.bot(made, 'sendMessage', menu));
    const page = await visitEnd(alice, made.id);
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
    const composer = page.getByRole('textbox', { name: 'Message' });
    await expect.poll(() => composer.inputValue()).toBe(`@${made.username} cats`);
    await composer.fill('');
    await page.context().unroute('https://shop.example/**');
    expect(world.faults()).toEqual([]);
  },
);

test('a reply is sent only once, and messages written offline keep their order', async () => {
  const { service } = world;
  const group = await service.newGroup(alice, 'Tunnel', [bob]);
  await resultOf(service.app(bob, 'POST', `/api/chats/${group}/messages`, { text: 'Where are you?' }));
  const page = await visit(alice, `#/chat/${group}`);
  const field = page.getByRole('textbox', { name: 'Message' });
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
  // Waits until the service has the reply, because the page shows the reply before it sends it. Only later calls are
  // aborted.
  await expect.poll(texts).toEqual(['Where are you?', 'In a tunnel']);
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
});

test("members of a group see each other's messages, replies, edits and deletions", async () => {
  const { service } = world;
  const group = await service.newGroup(alice, 'Hike', [bob]);
  const [a, b] = await Promise.all([visit(alice, `#/chat/${group}`), visit(bob, `#/chat/${group}`)]);
  const write = async (page: typeof a, text: string) => {
    await page.getByRole('textbox', { name: 'Message' }).fill(text);
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
  // Messages in a chat that is not open count as unread until they are read, even after a reload.
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
  await b.unroute(/settings.*\.js/);
  await b.reload();
  await b.getByText('2 unread', { exact: true }).waitFor({ state: 'attached' });
  await b.getByRole('link', { name: /Hike/ }).click();
  await b.getByText('2 unread', { exact: true }).waitFor({ state: 'detached' });
  await expect.poll(unread).toBeUndefined();
  expect(world.faults()).toEqual([]);
});

test('a post shows the same reaction counts on its page and in the chat', async () => {
  const { service } = world;
  const about = { type: 'channel', title: 'News', username: `news_${Date.now()}` };
  const channel = await resultOf(service.app(alice, 'POST', '/api/chats', about));
  await resultOf(service.app(bob, 'POST', `/api/chats/${channel.id}/join`));
  await resultOf(service.app(alice, 'POST', `/api/chats/${channel.id}/messages`, { text: 'First snow' }));
  const [a, b] = await Promise.all([
    visit(alice, `#/chat/${channel.id}/posts`),
    visit(bob, `#/chat/${channel.id}`),
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
});

longTest('an operator sees the processes and replays dead letters', async () => {
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
    .poll(() => processes.getByRole('row', { name: /^(all|front)/ }).count(), { timeout: 15_000 })
    .toBe(2);
  await second.kill();
  const killed = processes.getByRole('row', { name: `· ${second.pid}` });
  const redis = openAnywhere(service.redis);
  const key = makeKeys(Number(service.env.PARTITIONS ?? 64)).nodes();
  /** Makes the last report of the killed process `ms` older. */
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
  await hook.close();
});

longTest('a person sets who may add them, accepts one invitation and declines another', async () => {
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
});

longTest(
  'an administrator creates an invite link, and accepts a person who requests to join with the link',
  async () => {
    const { service } = world;
    const group = await service.newGroup(alice, 'Harbour');
    const a = await visit(alice, `#/chat/${group}`);
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
    const b = await visit(bob, new URL(invite_link).hash);
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
  },
);

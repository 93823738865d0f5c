/**
 * Tests the state that a person keeps across reloads, windows and chats: unsent messages, drafts, unread counts and
 * membership.
 */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { png } from '../support/samples.js';
import { itemsOf, resultOf, type TestUser } from '../support/service.js';
import { separateTests, startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bob: TestUser;

beforeAll(async () => {
  world = await startWorld();
  [alice, bob] = await Promise.all([world.service.newUser('alice'), world.service.newUser('bob')]);
});
separateTests(() => world);
afterAll(() => world?.stop());

const field = (page: Page) => page.getByRole('textbox', { name: 'Message' });

async function write(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await page.keyboard.press('Enter');
  await page.getByRole('log').getByText(text, { exact: true }).waitFor();
}

const textsOf = async (chat: number): Promise<string[]> =>
  (await itemsOf(world.service.app(bob, 'GET', `/api/chats/${chat}/messages`)))
    .flatMap(({ text, caption }: { text?: string; caption?: string }) => text ?? caption ?? [])
    .reverse();

test('messages that were unsent at a reload are sent once and in order', async () => {
  const chat = await world.service.newGroup(alice, 'Ferry', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  // The service gets the first message, but the answer never arrives. The other messages wait behind the first message.
  await page.route('**/messages', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    await route.fetch();
  });
  await write(page, 'first');
  await write(page, 'second');
  await page
    .getByLabel('Attach files')
    .last()
    .setInputFiles({
      name: 'sea.png',
      mimeType: 'image/png',
      buffer: png(64, 48),
    });
  await write(page, 'third');
  await expect.poll(() => textsOf(chat)).toEqual(['first']);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.reload();
  await expect.poll(() => textsOf(chat)).toEqual(['first', 'second', 'third']);
  const shown = page.getByRole('log').locator('article');
  await expect.poll(() => shown.locator('.text').allTextContents()).toEqual(['first', 'second', 'third']);
  await shown.last().locator('img').waitFor();
  await page.reload();
  await page.getByRole('log').getByText('third').waitFor();
  await expect.poll(() => page.getByText('Sending').count()).toBe(0);
  expect(await textsOf(chat)).toEqual(['first', 'second', 'third']);
  expect(world.faults()).toEqual([]);
});

test('a message is sent again after a reload if the answer to its call was cut off', async () => {
  const chat = await world.service.newGroup(alice, 'Cable', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  await page.route('**/messages', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    await route.fulfill({ status: 200, body: '{"ok":tr' });
  });
  await write(page, 'halfway');
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.reload();
  await page.getByRole('log').getByText('halfway').waitFor();
  await expect.poll(() => page.getByText('Sending').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
  expect(await textsOf(chat)).toEqual(['halfway']);
});

test('after a reload, a refused message is shown as not sent until the person deletes it', async () => {
  const chat = await world.service.newGroup(alice, 'Pier', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  const refusal = { ok: false, error_code: 400, description: 'Bad Request: message is too long' };
  await page.route('**/messages', (route) =>
    route.request().method() === 'POST' ? route.fulfill({ status: 400, json: refusal }) : route.continue(),
  );
  await write(page, 'refused');
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.reload();
  await page.getByRole('log').getByText('refused', { exact: true }).waitFor();
  await page.getByRole('log').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('refused', { exact: true }).waitFor({ state: 'detached' });
  await page.reload();
  await field(page).waitFor();
  await page.getByText('alice created the group').first().waitFor();
  expect(await page.getByRole('log').getByText('refused', { exact: true }).count()).toBe(0);
  expect(await textsOf(chat)).toEqual([]);
});

test('a draft of several lines is shown whole after a reload and in a narrower window', async () => {
  const chat = await world.service.newGroup(alice, 'Pier', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  const text = 'Half past eight it is. I bring a rope, two apples and my old camera.';
  const isWhole = () => field(page).evaluate((area) => area.scrollHeight <= area.clientHeight);
  await field(page).fill(text);
  for (const width of [1024, 320]) {
    await page.setViewportSize({ width, height: 800 });
    await page.waitForTimeout(500);
    await expect.poll(isWhole).toBe(true);
  }
  await page.reload();
  await expect.poll(() => field(page).inputValue()).toBe(text);
  await page.waitForTimeout(1_000);
  expect(await isWhole()).toBe(true);
});

/** Returns the drafts that the browser stores for the person. */
const storedDrafts = (page: Page, who: TestUser) =>
  page.evaluate(
    (name) =>
      new Promise<unknown[]>((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const reading = opening.result.transaction('drafts').objectStore('drafts').getAll();
          reading.onsuccess = () => {
            opening.result.close();
            resolve(reading.result);
          };
        };
      }),
    `petrel-${who.id}`,
  );

test('a draft survives a reload, and a sign-out removes it from the browser but not from the account', async () => {
  const chat = await world.service.newGroup(alice, 'Dock', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  await expect.poll(() => page.evaluate(async () => (await indexedDB.databases()).length)).toBe(1);
  await field(page).fill('half a thought');
  await page.reload();
  await expect.poll(() => field(page).inputValue()).toBe('half a thought');
  const saved = () => storedDrafts(page, alice);
  await expect.poll(saved).toContainEqual(expect.objectContaining({ chat, isUnsaved: false }));
  await page.goto(`${world.wire.url}/app#/settings`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Your token').waitFor();
  await expect.poll(saved).toEqual([]);
  const signIn = async (user: TestUser) => {
    await page.getByLabel('Your token').fill(user.token);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Chats' }).waitFor();
    await page.goto(`${world.wire.url}/app#/chat/${chat}`);
    await field(page).waitFor();
    await page.getByText('alice created the group').first().waitFor();
  };
  await signIn(alice);
  await expect.poll(() => field(page).inputValue()).toBe('half a thought');
  await field(page).fill('of alice');
  await page.evaluate(() => sessionStorage.clear());
  await page.reload();
  await signIn(bob);
  expect(await field(page).inputValue()).toBe('');
  expect(world.faults()).toEqual([]);
});

test('a text that is typed right after the page is shown does not replace a draft that the browser stores', async () => {
  const chat = await world.service.newGroup(alice, 'Slipway', [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  await page.route('**/api/me/drafts/**', (route) => route.abort());
  await field(page).fill('half a thought');
  await expect.poll(() => storedDrafts(page, alice)).toContainEqual(expect.objectContaining({ chat }));
  // Delays each transaction of the browser's storage by two seconds, so that typing begins before the draft is read.
  await page.addInitScript(() => {
    const given = Object.getOwnPropertyDescriptor(IDBTransaction.prototype, 'oncomplete');
    Object.defineProperty(IDBTransaction.prototype, 'oncomplete', {
      set(work) {
        given?.set?.call(this, () => setTimeout(work, 2_000));
      },
    });
  });
  await page.reload();
  await field(page).press('End');
  await field(page).pressSequentially(', and the rest');
  await expect.poll(() => field(page).inputValue()).toBe('half a thought, and the rest');
  expect(world.faults()).toEqual([]);
});

test('a text that is typed while an edit is being saved stays in the field', async () => {
  const chat = await world.service.newGroup(alice, 'Boathouse', [bob]);
  await resultOf(world.service.app(alice, 'POST', `/api/chats/${chat}/messages`, { text: 'At six' }));
  const page = await world.open(alice, `#/chat/${chat}`);
  await page.getByRole('log').getByText('At six', { exact: true }).waitFor();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let held = 0;
  await page.route(/\/messages\/\d+$/, async (route) => {
    held += 1;
    await released;
    await route.continue();
  });
  await field(page).press('ArrowUp');
  await expect.poll(() => field(page).inputValue()).toBe('At six');
  await field(page).fill('At seven');
  await field(page).press('Enter');
  await expect.poll(() => held).toBe(1);
  await field(page).press('End');
  await field(page).pressSequentially(', by boat');
  release();
  await page.getByRole('log').getByText('At seven', { exact: true }).waitFor();
  await page.waitForTimeout(500);
  expect(await field(page).inputValue()).toBe('At seven, by boat');
  expect(world.faults()).toEqual([]);
});

const rowsOf = (page: Page) => page.getByRole('log').locator('article');
const atEnd = (page: Page) =>
  page.getByRole('log').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 60);
const inView = (page: Page, text: string) =>
  page.getByRole('log').evaluate((box, wanted) => {
    const row = [...box.querySelectorAll('article')].find(
      (one) => one.querySelector('.text')?.textContent === wanted,
    );
    if (!row) return false;
    const [outer, inner] = [box.getBoundingClientRect(), row.getBoundingClientRect()];
    return inner.top >= outer.top && inner.bottom <= outer.bottom;
  }, text);

test('a chat with 60 unread messages opens at the first unread message, and only messages in view count as read', async () => {
  const { service } = world;
  const chat = await service.newGroup(bob, 'Harvest', [alice]);
  const say = (text: string) =>
    service.app(bob, 'POST', `/api/chats/${chat}/messages`, { text }).then(resultOf);
  const unread = async () =>
    (await resultOf(service.app(alice, 'GET', `/api/chats/${chat}`))).unread_count ?? 0;
  for (let n = 1; n <= 30; n++) await say(`old ${n}`);
  const read = await say('the last read');
  await resultOf(service.app(alice, 'POST', `/api/chats/${chat}/read`, { message_id: read.message_id }));
  for (let n = 1; n <= 60; n++) await say(`new ${n}`);
  const page = await world.open(alice, `#/chat/${chat}`);
  await page.getByText('Unread messages', { exact: true }).waitFor();
  await expect.poll(() => inView(page, 'new 1')).toBe(true);
  expect(await atEnd(page)).toBe(false);
  const arrow = page.getByRole('button', { name: /^Go to the newest message, \d+ unread$/ });
  const counted = async () => Number(/\d+/.exec((await arrow.getAttribute('aria-label')) ?? '')?.[0]);
  let left = 0;
  // Waits, because the page may mark the messages in view in several steps.
  const agrees = async () => {
    left = await unread();
    return left < 60 && left === (await counted());
  };
  await expect.poll(agrees).toBe(true);
  expect(left).toBeGreaterThan(30);
  await page.locator('.chat-row.chosen').getByText(`${left} unread`).waitFor({ state: 'attached' });
  await say('one more');
  await page.getByRole('button', { name: `Go to the newest message, ${left + 1} unread` }).click();
  await expect.poll(() => inView(page, 'one more')).toBe(true);
  await expect.poll(unread).toBe(0);
  await page.locator('.to-end').waitFor({ state: 'detached' });
  expect(world.faults()).toEqual([]);
});

test('while a person has scrolled up, the down arrow counts new messages until they are seen', async () => {
  const { service } = world;
  const chat = await service.newGroup(bob, 'Orchard', [alice]);
  const say = (text: string) =>
    service.app(bob, 'POST', `/api/chats/${chat}/messages`, { text }).then(resultOf);
  for (let n = 1; n <= 40; n++) await say(`tree ${n}`);
  const page = await world.open(alice, `#/chat/${chat}`);
  const log = page.getByRole('log');
  const top = () => log.evaluate((box) => box.scrollTop);
  await page.getByText('Unread messages', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^Go to the newest message/ }).click();
  const unread = async () =>
    (await resultOf(service.app(alice, 'GET', `/api/chats/${chat}`))).unread_count ?? 0;
  await expect.poll(unread).toBe(0);
  await say('in view');
  await expect.poll(() => inView(page, 'in view')).toBe(true);
  await expect.poll(unread).toBe(0);
  await log.hover();
  await page.mouse.wheel(0, -300);
  await expect.poll(() => atEnd(page)).toBe(false);
  let place = await top();
  // Waits, because the browser may scroll in several steps.
  const rests = async () => {
    const before = place;
    place = await top();
    return place === before;
  };
  await expect.poll(rests, { interval: 200 }).toBe(true);
  await say('apple');
  await say('pear');
  await page.getByRole('button', { name: 'Go to the newest message, 2 unread' }).waitFor();
  expect(await top()).toBe(place);
  expect(await unread()).toBe(2);
  await page.mouse.wheel(0, 2_000);
  await expect.poll(() => inView(page, 'pear')).toBe(true);
  await page.locator('.to-end').waitFor({ state: 'detached' });
  await expect.poll(unread).toBe(0);
  // The line above the first new message disappears when the person writes.
  const line = page.locator('.unread-line + *, :has(> .unread-line) + *').first();
  await expect.poll(() => line.textContent()).toContain('apple');
  await write(page, 'thanks');
  await page.locator('.unread-line').waitFor({ state: 'detached' });
  expect(await rowsOf(page).last().textContent()).toContain('thanks');
  expect(world.faults()).toEqual([]);
});

test('in a window without focus, the first unread message stays in view', async () => {
  const { service } = world;
  const chat = await service.newGroup(bob, 'Meadow', [alice]);
  const say = (text: string) =>
    service.app(bob, 'POST', `/api/chats/${chat}/messages`, { text }).then(resultOf);
  const unread = async () =>
    (await resultOf(service.app(alice, 'GET', `/api/chats/${chat}`))).unread_count ?? 0;
  await say('before');
  const page = await world.open(alice, `#/chat/${chat}`);
  await expect.poll(unread).toBe(0);
  const focus = (has: boolean) =>
    page.evaluate((value) => {
      document.hasFocus = () => value;
      if (value) dispatchEvent(new Event('focus'));
    }, has);
  await focus(false);
  for (let n = 1; n <= 40; n++) await say(`flower ${n}`);
  await page.locator('.chat-row.chosen').getByText('40 unread').waitFor({ state: 'attached' });
  await expect.poll(() => inView(page, 'flower 1')).toBe(true);
  expect(await unread()).toBe(40);
  await focus(true);
  await expect.poll(unread).toBeLessThan(40);
  expect(await unread()).toBeGreaterThan(10);
  expect(world.faults()).toEqual([]);
});

test('a new group is the first chat in the list, in every window of the creator', async () => {
  const { service } = world;
  const dora = await service.newUser('dora');
  await service.newGroup(dora, 'Earlier');
  const [page, other] = [await world.open(dora), await world.open(dora)];
  await other.locator('.chat-row', { hasText: 'Earlier' }).waitFor();
  for (const [kind, title] of [
    ['Group', 'Rowing'],
    ['Channel', 'Regatta'],
  ] as const) {
    // Chats whose latest messages were sent in the same second are sorted by id.
    await page.waitForTimeout(1_100);
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.getByRole('radio', { name: kind }).check();
    await page.getByLabel('Title').fill(title);
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    await page
      .getByRole('button', { name: `About ${title}` })
      .first()
      .waitFor();
    for (const window of [page, other])
      await expect.poll(() => window.locator('.chat-row').first().textContent()).toContain(title);
  }
  expect(world.faults()).toEqual([]);
});

test('a person who is added to a channel or removed from a channel sees the change immediately', async () => {
  const { service } = world;
  const channel = await resultOf(
    service.app(alice, 'POST', '/api/chats', { type: 'channel', title: 'Tides', private: true }),
  );
  await service.newGroup(alice, 'Acquaintances', [bob]);
  const page = await world.open(bob);
  await page.locator('.chat-row', { hasText: 'Acquaintances' }).waitFor();
  const row = page.locator('.chat-row', { hasText: 'Tides' });
  expect(await row.count()).toBe(0);
  await resultOf(service.app(alice, 'PUT', `/api/chats/${channel.id}/members/${bob.id}`, {}));
  await row.click();
  await page.getByText('Only administrators can post here.').waitFor();
  await resultOf(service.app(alice, 'DELETE', `/api/chats/${channel.id}/members/${bob.id}`));
  await row.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Join' }).waitFor();
  expect(world.faults()).toEqual([]);
});

test('after a connection loss, the chat list shows the chats that the person joined or left meanwhile', async () => {
  const { service } = world;
  const kept = await service.newGroup(alice, 'Former harbour', [bob]);
  const page = await world.open(bob);
  const row = (title: string) => page.locator('.chat-row', { hasText: title });
  await row('Former harbour').waitFor();
  await page.context().setOffline(true);
  world.wire.cut();
  await page.getByRole('heading', { name: 'Connecting…' }).waitFor();
  await service.newGroup(alice, 'Later harbour', [bob]);
  await resultOf(service.app(alice, 'DELETE', `/api/chats/${kept}/members/${bob.id}`));
  await page.context().setOffline(false);
  world.wire.restore();
  await row('Later harbour').waitFor();
  await row('Former harbour').waitFor({ state: 'detached' });
});

test('Pin and Delete are offered only to people who have the right', async () => {
  const { service } = world;
  const chat = await service.newGroup(alice, 'Council', [bob]);
  const write = (user: TestUser, text: string) =>
    service.app(user, 'POST', `/api/chats/${chat}/messages`, { text }).then(resultOf);
  const { message_id } = await write(alice, 'from alice');
  await write(bob, 'from bob');
  await resultOf(service.app(alice, 'POST', `/api/chats/${chat}/pin`, { message_id }));
  const offered = async (page: Page, text: string) => {
    await page.getByRole('log').getByText(text, { exact: true }).click({ button: 'right' });
    await page.getByRole('menuitem', { name: 'Copy text' }).waitFor();
    const labels = await page.getByRole('menuitem').allInnerTexts();
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'detached' });
    return labels.filter((label) => ['Pin', 'Unpin', 'Delete'].includes(label.trim()));
  };
  const [a, b] = [await world.open(alice, `#/chat/${chat}`), await world.open(bob, `#/chat/${chat}`)];
  // The rights of a person and the pinned message may arrive after the messages.
  for (const page of [a, b]) await page.locator('.pinned').getByText('from alice').waitFor();
  expect(await offered(a, 'from alice')).toEqual(['Unpin', 'Delete']);
  expect(await offered(a, 'from bob')).toEqual(['Pin', 'Delete']);
  expect(await offered(b, 'from alice')).toEqual([]);
  expect(await offered(b, 'from bob')).toEqual(['Delete']);
  expect(await b.getByRole('button', { name: 'Unpin' }).count()).toBe(0);
  await a.getByRole('button', { name: 'Unpin' }).waitFor();
  expect(world.faults()).toEqual([]);
});

test('the list of commands is above the text field, and Escape or a click outside closes the list', async () => {
  const { service } = world;
  const bot = await service.newBot(alice, 'waiter');
  const commands = ['menu', 'bill'].map((command) => ({ command, description: `Shows the ${command}` }));
  await resultOf(service.bot(bot, 'setMyCommands', { commands }));
  await service.openChat(alice, bot);
  const page = await world.open(alice, `#/chat/${bot.id}`, { viewport: { width: 1_900, height: 800 } });
  const list = page.getByRole('listbox', { name: 'Commands' });
  const button = page.getByRole('button', { name: 'Commands' });
  await button.click();
  await list.getByText('/bill').waitFor();
  const [box, row] = await Promise.all([list.boundingBox(), page.locator('.composer-row').boundingBox()]);
  expect(Math.abs((box?.x ?? 0) - (row?.x ?? 0))).toBeLessThan(4);
  await page.keyboard.press('Escape');
  await list.waitFor({ state: 'detached' });
  await button.click();
  await list.waitFor();
  await page.getByRole('log').click({ position: { x: 20, y: 20 } });
  await list.waitFor({ state: 'detached' });
  // A text that is not a command stays when a command is chosen from the list.
  await field(page).fill('half a thought');
  await button.click();
  await list.getByText('/bill').click();
  await page.getByRole('log').getByText('/bill', { exact: true }).waitFor();
  expect(await field(page).inputValue()).toBe('half a thought');
  await field(page).fill('/m');
  await list.getByText('/menu').waitFor();
  await page.keyboard.press('Escape');
  await list.waitFor({ state: 'detached' });
  expect(await field(page).inputValue()).toBe('/m');
  for (const text of ['', '/m']) await field(page).fill(text);
  await list.getByText('/menu').waitFor();
  await page.reload();
  await list.getByText('/menu').waitFor();
  await field(page).fill('/me');
  await list.getByText('/menu').waitFor();
  await page.getByRole('log').click({ position: { x: 20, y: 20 } });
  await list.waitFor({ state: 'detached' });
  expect(world.faults()).toEqual([]);
});

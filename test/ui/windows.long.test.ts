/**
 * Tests that every change appears in all windows of a person: two wide windows and a window as narrow as a phone.
 * Prints how long each change took.
 */
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { png } from '../support/samples.js';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 300_000 });

/** How many times each change is made. The printed table shows the median and the maximum time. */
const rounds = 5;
/** The limit is generous, because a busy machine delays every window. The goal is 500 ms. */
const shown_ms_max = 10_000;
const phone = { width: 390, height: 844 };

/** The elements that show a change. With `isGone`, the change removes these elements. */
interface Wanted {
  readonly selector: string;
  /** If set, the elements are text fields, and one of them must have this value. */
  readonly value?: string;
  /** The text that one of the elements must contain. */
  readonly text?: string;
  /** Whether the change removes all elements that match `selector` from the page. */
  readonly isGone?: boolean;
}

let world: World;
let [alice, bob] = [] as unknown as [TestUser, TestUser];
let bot: TestBot;
let windows: readonly Page[] = [];
/**
 * For each kind of change, two times in ms until the last window showed the change: from the call, and from the answer
 * to the call.
 */
const times = new Map<string, Array<readonly [fromCall: number, fromAnswer: number]>>();

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  // Creates a common group, because people without a common chat can add each other only a few times a day.
  await service.newGroup(alice, 'Acquaintances', [bob]);
  bot = await service.newBot(alice, 'writer');
  await service.openChat(alice, bot);
});

const app = (who: TestUser, verb: string, path: string, body?: object) =>
  resultOf(world.service.app(who, verb, path, body));
const say = async (chat: number, text: string): Promise<number> =>
  (await app(bob, 'POST', `/api/chats/${chat}/messages`, { text })).message_id;

async function putPicture(who: TestUser, path: string): Promise<void> {
  const answer = await fetch(`${world.wire.url}${path}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${who.token}`, 'content-type': 'image/png' },
    body: new Uint8Array(png(320, 320)),
  });
  expect(answer.status).toBe(200);
}

async function openWindows(): Promise<readonly Page[]> {
  const opened = [await world.open(alice), await world.open(alice)];
  return [...opened, await world.open(alice, '', { viewport: phone })];
}

async function showAll(hash: string, ready: string): Promise<void> {
  for (const page of windows) {
    await page.evaluate((to) => {
      location.hash = to;
    }, hash);
    await page.locator(ready).first().waitFor();
  }
}

/** Starts to check a page in every frame. `shownAt` becomes the time at which the page shows the expected change. */
function watch({ selector, text, value, isGone = false }: Wanted): void {
  const isShown = () => {
    const found = [...document.querySelectorAll(selector)].filter(
      (one) =>
        one.checkVisibility({ visibilityProperty: true }) &&
        (text === undefined || one.textContent?.includes(text)) &&
        (value === undefined || (one as HTMLTextAreaElement).value === value) &&
        (!(one instanceof HTMLImageElement) || (one.complete && one.naturalWidth > 0)),
    );
    return isGone ? found.length === 0 : found.length > 0;
  };
  const page = window as unknown as { shownAt: Promise<number> };
  page.shownAt = new Promise((resolve) => {
    const look = () => (isShown() ? resolve(Date.now()) : requestAnimationFrame(look));
    look();
  });
}

/** Makes a change and waits until all windows show it. */
async function measure<T>(kind: string, wanted: Wanted, change: () => Promise<T>): Promise<T> {
  await Promise.all(windows.map((page) => page.evaluate(watch, wanted)));
  const called = Date.now();
  const result = await change();
  const answered = Date.now();
  const shown = await Promise.all(
    windows.map(async (page, n) => {
      const at = page.evaluate(() => (window as unknown as { shownAt: Promise<number> }).shownAt);
      const late = page.waitForTimeout(shown_ms_max).then(() => Number.NaN);
      const ms = (await Promise.race([at, late])) - called;
      const found = ms < shown_ms_max ? [] : await page.locator(wanted.selector).allInnerTexts();
      const why = `${kind}: window ${n + 1} does not show ${JSON.stringify(wanted)}, but ${JSON.stringify(found)}`;
      expect(ms, why).toBeLessThan(shown_ms_max);
      return ms;
    }),
  );
  const last = Math.max(...shown);
  const list = times.get(kind) ?? [];
  times.set(kind, [...list, [last, Math.max(0, last - (answered - called))]]);
  return result;
}

const middle = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

function printTimes(): void {
  const lines = [...times].map(([kind, list]) => {
    const [calls, answers] = [list.map(([ms]) => ms), list.map(([, ms]) => ms)];
    const figures = [middle(answers), Math.max(...answers), middle(calls), Math.max(...calls)];
    return kind.padEnd(44) + figures.map((ms) => String(ms).padStart(8)).join('');
  });
  const head = ['answer', 'max', 'call', 'max'].map((name) => name.padStart(8)).join('');
  console.log([`${'ms until all windows show it, from the'.padEnd(44)}${head}`, ...lines].join('\n'));
  times.clear();
}

test('the lists of all windows show each change of a group', async () => {
  windows = await openWindows();
  const chatWithBot = `.chat-row[href="#/chat/${bot.id}"]`;
  await showAll('#/', chatWithBot);
  for (let n = 1; n <= rounds; n++) {
    const group = await world.service.newGroup(bob, `Harbour ${n}`);
    const path = `/api/chats/${group}`;
    const row = `.chat-row[href="#/chat/${group}"]`;
    await measure('list: added to a group', { selector: row, text: `Harbour ${n}` }, () =>
      app(bob, 'PUT', `${path}/members/${alice.id}`, {}),
    );
    const id = await measure('list: new message', { selector: row, text: `news ${n}` }, () =>
      say(group, `news ${n}`),
    );
    await expect.poll(() => windows[0]?.locator(`${row} .badge`).count()).toBe(1);
    await measure('list: read mark', { selector: `${row} .badge`, isGone: true }, () =>
      app(alice, 'POST', `${path}/read`, { message_id: id }),
    );
    await measure('list: message edited', { selector: row, text: `better ${n}` }, () =>
      app(bob, 'PATCH', `${path}/messages/${id}`, { text: `better ${n}` }),
    );
    await measure('list: message deleted', { selector: row, text: `better ${n}`, isGone: true }, () =>
      app(bob, 'DELETE', `${path}/messages/${id}`),
    );
    await measure('list: group renamed', { selector: `${row} .chat-name`, text: `Quay ${n}` }, () =>
      app(bob, 'PATCH', path, { title: `Quay ${n}` }),
    );
    await measure('list: picture set', { selector: `${row} img` }, () => putPicture(bob, `${path}/photo`));
    await measure('list: picture removed', { selector: `${row} img`, isGone: true }, () =>
      app(bob, 'DELETE', `${path}/photo`),
    );
    await measure('list: removed from a group', { selector: row, isGone: true }, () =>
      app(bob, 'DELETE', `${path}/members/${alice.id}`),
    );
  }
  printTimes();
  expect(world.faults()).toEqual([]);
});

test('an open group shows each change in all windows', async () => {
  windows = await openWindows();
  const group = await world.service.newGroup(bob, 'Pier', [alice]);
  const path = `/api/chats/${group}`;
  await showAll(`#/chat/${group}`, '[role=log]');
  const log = '[role=log]';
  const title = '.chat-title';
  for (let n = 1; n <= rounds; n++) {
    const id = await measure('chat: new message', { selector: log, text: `news ${n}.` }, () =>
      say(group, `news ${n}.`),
    );
    await measure('chat: message edited', { selector: log, text: `better ${n}.` }, () =>
      app(bob, 'PATCH', `${path}/messages/${id}`, { text: `better ${n}.` }),
    );
    await measure('chat: message deleted', { selector: log, text: `better ${n}.`, isGone: true }, () =>
      app(bob, 'DELETE', `${path}/messages/${id}`),
    );
    await measure('chat: group renamed', { selector: title, text: `Jetty ${n}` }, () =>
      app(bob, 'PATCH', path, { title: `Jetty ${n}` }),
    );
    await measure('chat: picture set', { selector: `${title} img` }, () => putPicture(bob, `${path}/photo`));
    await measure('chat: picture removed', { selector: `${title} img`, isGone: true }, () =>
      app(bob, 'DELETE', `${path}/photo`),
    );
    // A person who left a group cannot be added to the group again without an invitation, so each round adds another
    // person.
    const carol = await world.service.newUser('carol');
    await measure('chat: another member added', { selector: title, text: 'Members: 3' }, () =>
      app(bob, 'PUT', `${path}/members/${carol.id}`, {}),
    );
    await measure('chat: another member left', { selector: title, text: 'Members: 2' }, () =>
      app(carol, 'POST', `${path}/leave`, {}),
    );
    await measure('chat: removed from the group', { selector: 'main textarea', isGone: true }, () =>
      app(bob, 'DELETE', `${path}/members/${alice.id}`),
    );
    await measure('chat: added to the group again', { selector: 'main textarea' }, () =>
      app(bob, 'PUT', `${path}/members/${alice.id}`, {}),
    );
  }
  printTimes();
  expect(world.faults()).toEqual([]);
});

test("all windows of the owner show a bot's draft, final message, new name and new picture", async () => {
  windows = await openWindows();
  await showAll(`#/chat/${bot.id}`, '[role=log]');
  const write = (method: string, params: object) => () =>
    resultOf(world.service.bot(bot, method, { chat_id: alice.id, ...params }));
  for (let n = 1; n <= rounds; n++) {
    await measure(
      'bot: draft',
      { selector: '.draft', text: `Once ${n}` },
      write('sendMessageDraft', {
        ...{ draft_id: n, text: `Once ${n}` },
      }),
    );
    await measure(
      'bot: draft grows',
      { selector: '.draft', text: 'upon' },
      write('sendMessageDraft', {
        ...{ draft_id: n, text: `Once ${n} upon` },
      }),
    );
    await measure(
      'bot: message replaces the draft',
      { selector: '.draft', isGone: true },
      write('sendMessage', { text: `Once ${n} upon a time` }),
    );
    await measure('bot: name changed', { selector: '.chat-title', text: `Teller ${n}` }, () =>
      app(alice, 'PATCH', `/api/me/bots/${bot.id}`, { name: { '': `Teller ${n}` } }),
    );
    await measure('bot: picture set', { selector: '.chat-title img' }, () =>
      putPicture(alice, `/api/me/bots/${bot.id}/avatar`),
    );
    await measure('bot: picture removed', { selector: '.chat-title img', isGone: true }, () =>
      app(alice, 'DELETE', `/api/me/bots/${bot.id}/avatar`),
    );
  }
  printTimes();
  expect(world.faults()).toEqual([]);
});

test('when a person changes their name or avatar, all windows of both people in the chat show the change', async () => {
  const dave = await world.service.newUser('dave');
  const chat = await app(alice, 'POST', `/api/people/${dave.username}/chat`, {});
  await app(dave, 'POST', `/api/chats/${chat.id}/messages`, { text: 'Hello Alice' });
  windows = await openWindows();
  await showAll(`#/chat/${chat.id}`, '[role=log]');
  for (let n = 1; n <= rounds; n++) {
    await measure('person: renamed', { selector: '.chat-title', text: `Dave ${n}` }, () =>
      app(dave, 'PATCH', '/api/me', { first_name: `Dave ${n}` }),
    );
    if (n > rounds / 2) continue;
    await measure('person: avatar set', { selector: '.chat-title img' }, () =>
      putPicture(dave, '/api/me/avatar'),
    );
    await measure('person: avatar removed', { selector: '.chat-title img', isGone: true }, () =>
      app(dave, 'DELETE', '/api/me/avatar'),
    );
  }
  await showAll('#/settings', '.own-profile');
  for (let n = 1; n <= rounds; n++) {
    await measure('own: renamed', { selector: '.own-profile', text: `Alice ${n}` }, () =>
      app(alice, 'PATCH', '/api/me', { first_name: `Alice ${n}` }),
    );
    if (n > rounds / 2) continue;
    await measure('own: avatar set', { selector: '.own-profile img' }, () =>
      putPicture(alice, '/api/me/avatar'),
    );
    await measure('own: avatar removed', { selector: '.own-profile img', isGone: true }, () =>
      app(alice, 'DELETE', '/api/me/avatar'),
    );
  }
  printTimes();
  expect(world.faults()).toEqual([]);
});

test('all windows show the text that a person types in one of them, until the message is sent', async () => {
  windows = await openWindows();
  await showAll(`#/chat/${bot.id}`, 'main textarea');
  for (const typing of [0, windows.length - 1]) {
    const field = (windows[typing] as Page).locator('main textarea');
    for (let n = 1; n <= rounds; n++) {
      const text = `Draft ${typing}.${n}`;
      await measure('draft: typed', { selector: 'main textarea', value: text }, () => field.fill(text));
      await field.press('End');
      await measure('draft: typed further', { selector: 'main textarea', value: `${text}, longer` }, () =>
        field.pressSequentially(', longer'),
      );
      await measure('draft: message sent', { selector: 'main textarea', value: '' }, () =>
        (windows[typing] as Page).getByRole('button', { name: 'Send', exact: true }).click(),
      );
    }
  }
  printTimes();
  const left = await itemsOf(world.service.app(alice, 'GET', '/api/me/drafts'));
  expect(left).toMatchObject([{ chat_id: bot.id, text: '' }]);
  expect(world.faults()).toEqual([]);
});

test('a draft that was typed without a connection appears in the other windows when the connection is back', async () => {
  windows = await openWindows();
  await showAll(`#/chat/${bot.id}`, 'main textarea');
  const [first, ...others] = windows as [Page, ...Page[]];
  const text = 'Typed offline';
  await first.context().setOffline(true);
  await first.locator('main textarea').fill(text);
  await first.waitForTimeout(1_000);
  await first.context().setOffline(false);
  for (const page of others) await expect.poll(() => page.locator('main textarea').inputValue()).toBe(text);
  // A window that opens later shows the draft too.
  const late = await world.open(alice, `#/chat/${bot.id}`);
  windows = [...windows, late];
  await expect.poll(() => late.locator('main textarea').inputValue()).toBe(text);
  expect(world.faults()).toEqual([]);
});

test('a draft of another window does not change the message that a person edits', async () => {
  windows = await openWindows();
  const group = await world.service.newGroup(bob, 'Editors', [alice]);
  await app(alice, 'POST', `/api/chats/${group}/messages`, { text: 'First version' });
  await showAll(`#/chat/${group}`, 'main textarea');
  const [editor, typist] = windows as [Page, Page];
  const field = editor.locator('main textarea');
  // Waits for the message, because ArrowUp edits the last message and the text field is shown before the messages.
  await editor.getByRole('log').getByText('First version', { exact: true }).waitFor();
  await field.press('ArrowUp');
  await expect.poll(() => field.inputValue()).toBe('First version');
  await field.fill('Second version');
  await typist.locator('main textarea').fill('A draft');
  const drafts = () => itemsOf(world.service.app(alice, 'GET', '/api/me/drafts?limit=100'));
  await expect.poll(drafts).toContainEqual(expect.objectContaining({ text: 'A draft' }));
  const phoneField = (windows[2] as Page).locator('main textarea');
  await expect.poll(() => phoneField.inputValue()).toBe('A draft');
  expect(await field.inputValue()).toBe('Second version');
  await field.press('Escape');
  await expect.poll(() => field.inputValue()).toBe('A draft');
  expect(world.faults()).toEqual([]);
});

test('all windows show each reaction to a post', async () => {
  windows = await openWindows();
  const channel = await app(bob, 'POST', '/api/chats', { type: 'channel', title: 'Tides', private: true });
  await app(bob, 'PUT', `/api/chats/${channel.id}/members/${alice.id}`, {});
  await say(channel.id, 'High water at noon');
  const [post] = await itemsOf(world.service.app(bob, 'GET', `/api/chats/${channel.id}/posts?limit=1`));
  const reactions = `/api/posts/${post.id}/reactions`;
  await showAll(`#/chat/${channel.id}`, '.reactions .reaction');
  for (let n = 1; n <= rounds; n++) {
    await measure('channel: reaction of another person', { selector: '.reaction', text: '🔥' }, () =>
      world.service.app(bob, 'POST', reactions, { emoji: '🔥' }),
    );
    await measure('channel: reaction removed', { selector: '.reaction', text: '🔥', isGone: true }, () =>
      world.service.app(bob, 'DELETE', reactions, {}),
    );
    await measure('channel: own reaction in another window', { selector: '.reaction.own', text: '❤' }, () =>
      world.service.app(alice, 'POST', reactions, { emoji: '❤' }),
    );
    await measure('channel: own reaction removed', { selector: '.reaction.own', isGone: true }, () =>
      world.service.app(alice, 'DELETE', reactions, {}),
    );
  }
  printTimes();
  expect(world.faults()).toEqual([]);
});

test('a chat list that arrives late hides no chat that was joined meanwhile, and shows no chat that was left meanwhile', async () => {
  const left = await world.service.newGroup(bob, 'Sandbank', [alice]);
  const page = await world.open(alice);
  const row = (chat: number) => page.locator(`.chat-row[href="#/chat/${chat}"]`);
  await row(left).waitFor();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let [held, answered] = [0, 0];
  await page.route('**/api/chats', async (route) => {
    const response = await route.fetch();
    held += 1;
    await released;
    await route.fulfill({ response });
    answered += 1;
  });
  // The application loads the list when the window becomes visible.
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await expect.poll(() => held).toBe(1);
  const joined = await world.service.newGroup(bob, 'Lagoon', [alice]);
  await app(bob, 'DELETE', `/api/chats/${left}/members/${alice.id}`);
  await row(joined).waitFor();
  await row(left).waitFor({ state: 'detached' });
  release();
  await expect.poll(() => answered).toBe(1);
  await page.waitForTimeout(500);
  expect([await row(joined).count(), await row(left).count()]).toEqual([1, 0]);
  expect(world.faults()).toEqual([]);
});

test('a new chat title that arrives late does not hide a newer message in the chat list', async () => {
  const page = await world.open(alice);
  const group = await world.service.newGroup(bob, 'Breakwater', [alice]);
  const row = page.locator(`.chat-row[href="#/chat/${group}"]`);
  await row.waitFor();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let held = 0;
  await page.route(`**/api/chats/${group}`, async (route) => {
    const response = await route.fetch();
    held += 1;
    await released;
    await route.fulfill({ response });
  });
  await app(bob, 'PATCH', `/api/chats/${group}`, { title: 'Mole' });
  await expect.poll(() => held).toBe(1);
  await say(group, 'the newest message');
  await row.getByText('the newest message').waitFor();
  release();
  await row.locator('.chat-name').getByText('Mole').waitFor();
  expect(await row.innerText()).toContain('the newest message');
  const { unread_count } = await app(alice, 'GET', `/api/chats/${group}`);
  await row.getByText(`${unread_count} unread`).waitFor({ state: 'attached' });
  expect(world.faults()).toEqual([]);
});

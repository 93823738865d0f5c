/**
 * Tests notifications in a real browser: the switch, mutes, and the handling of push messages by the service worker.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CDPSession, Page, Worker } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Browser, makeBrowser } from '../push/browser.js';
import { resultOf, type TestBot, type TestUser } from '../support/service.js';
import { separateTests, startWorld, type World } from './world.js';

// Allows two minutes for each test, because a busy machine draws pages slowly.
vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bot: TestBot;

beforeAll(async () => {
  world = await startWorld({
    VAPID_PRIVATE_KEY: Buffer.alloc(32, 7).toString('base64url'),
    VAPID_SUBJECT: 'mailto:operator@example.org',
  });
  alice = await world.service.newUser('alice');
  bot = await world.service.newBot(alice, 'news');
  await world.service.openChat(alice, bot);
});
separateTests(() => world);
afterAll(() => world?.stop());

const open = (path: string, permissions: string[] = []) => world.open(alice, path, { permissions });

test('the chat list shows that a chat is muted', async () => {
  const page = await open(`#/chat/${bot.id}`);
  const row = page.locator('.chat-row', { hasText: 'news' });
  const mark = row.getByText('Muted', { exact: true });
  const about = page.getByRole('dialog');
  const show = () => page.getByRole('button', { name: /^About/ }).click();
  await show();
  await about.getByRole('button', { name: 'Until I unmute it' }).click();
  await about.getByRole('button', { name: 'Unmute' }).waitFor();
  await expect.poll(() => mark.count()).toBe(1);
  await about.getByRole('button', { name: 'Unmute' }).click();
  await about.getByRole('button', { name: '8 h' }).click();
  await about.getByText(/^Muted until/).waitFor();
  const { muted_until } = await resultOf(world.service.app(alice, 'GET', `/api/chats/${bot.id}`));
  expect(Math.abs(muted_until - Date.now() / 1_000 - 8 * 3_600)).toBeLessThan(60);
  await about.getByRole('button', { name: 'Unmute' }).click();
  await expect.poll(() => mark.count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

test('the notification switch asks the browser for permission only on a click', async () => {
  const refused = await open('#/settings');
  await refused.getByText('Your browser blocks notifications').waitFor();
  expect(await refused.getByRole('switch', { name: 'Notifications' }).isDisabled()).toBe(true);
  await refused.context().close();
  const page = await open('#/settings', ['notifications']);
  const control = page.getByRole('switch', { name: 'Notifications' });
  await page.addInitScript(() => {
    Notification.requestPermission = async () => {
      document.documentElement.dataset.asked = 'asked';
      return 'default';
    };
  });
  await page.reload();
  await control.waitFor();
  const asked = () => page.evaluate(() => document.documentElement.dataset.asked);
  expect(await asked()).toBeUndefined();
  await control.click();
  await expect.poll(asked).toBe('asked');
  await expect.poll(() => control.isChecked()).toBe(false);
  expect(world.faults()).toEqual([]);
});

/** The subscription that a push service would create. The test browser cannot reach a push service. */
async function withSubscription(page: Page, subscription: Browser['subscription']): Promise<void> {
  await page.addInitScript((given) => {
    const key = 'fake subscription';
    const made = (applicationServerKey: ArrayBuffer | null) => ({
      ...{ endpoint: given.endpoint, options: { applicationServerKey } },
      toJSON: () => given,
      unsubscribe: async () => localStorage.removeItem(key),
    });
    // A real browser stores a key with the subscription. Here, `getSubscription` returns a subscription without a key.
    PushManager.prototype.getSubscription = async () =>
      (localStorage.getItem(key) ? made(null) : null) as PushSubscription | null;
    PushManager.prototype.subscribe = async (options) => {
      localStorage.setItem(key, 'yes');
      return made(options?.applicationServerKey as ArrayBuffer) as unknown as PushSubscription;
    };
  }, subscription);
  await page.reload();
}

test('a person who turns notifications on gets notifications until the person turns them off or signs out', async () => {
  const page = await open('#/settings', ['notifications']);
  // This is a public address, but the test sends nothing to it.
  await withSubscription(page, makeBrowser('https://1.1.1.1').subscription);
  const control = page.getByRole('switch', { name: 'Notifications' });
  const count = async () =>
    (await resultOf(world.service.app(alice, 'GET', '/api/me/push'))).subscriptions as number;
  await control.click();
  await expect.poll(() => control.isChecked()).toBe(true);
  await expect.poll(count).toBe(1);
  await control.click();
  await expect.poll(() => control.isChecked()).toBe(false);
  await expect.poll(count).toBe(0);
  await control.click();
  await expect.poll(() => control.isChecked()).toBe(true);
  await expect.poll(count).toBe(1);
  await page.reload();
  await expect.poll(() => control.isChecked()).toBe(true);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Your token').waitFor();
  await expect.poll(count).toBe(0);
  expect(world.faults()).toEqual([]);
});

/** Returns the service worker of a page, and a function that delivers a push message to it. */
async function workerOf(page: Page): Promise<{ worker: Worker; push(data: object): Promise<void> }> {
  const cdp: CDPSession = await page.context().newCDPSession(page);
  const registered = new Promise<string>((resolve) => {
    cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const [first] = registrations;
      if (first) resolve(first.registrationId);
    });
  });
  await cdp.send('ServiceWorker.enable');
  const appeared = page.context().waitForEvent('serviceworker');
  await page.getByRole('switch', { name: 'Notifications' }).click();
  const worker = await appeared;
  const registrationId = await registered;
  const origin = new URL(page.url()).origin;
  return {
    worker,
    push: (data) =>
      cdp
        .send('ServiceWorker.deliverPushMessage', { origin, registrationId, data: JSON.stringify(data) })
        .then(() => undefined),
  };
}

const shown = (page: Page) =>
  page.evaluate(async () => {
    const registration = await navigator.serviceWorker.getRegistration('/app/worker.js');
    return ((await registration?.getNotifications()) ?? []).map(({ title, body, tag }) => [title, body, tag]);
  });

test('the service worker shows a notification for the latest message in a chat, unless the chat is in view', async () => {
  const page = await open('#/settings', ['notifications']);
  const { worker, push } = await workerOf(page);
  const payload = { chat_id: bot.id, title: 'news', date: Math.floor(Date.now() / 1_000) };
  // The browser may drop a push message while a worker starts or stops. The test therefore sends each message until
  // it has an effect.
  const afterPushes = (...messages: object[]) =>
    expect.poll(
      async () => {
        for (const message of messages) await push({ ...payload, ...message });
        await sleep(500);
        return shown(page);
      },
      { timeout: 60_000 },
    );
  await afterPushes({ message_id: 1, body: 'one' }, { message_id: 2, body: 'two' }).toEqual([
    ['news', 'two', `chat-${bot.id}`],
  ]);

  // Dispatches the click event, because notifications cannot be clicked in a browser without a screen.
  await worker.evaluate(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: the types of a worker's global names exclude those of a page
    const scope = globalThis as any;
    const [notification] = await scope.registration.getNotifications();
    scope.dispatchEvent(new scope.NotificationEvent('notificationclick', { notification }));
  });
  await page.waitForURL(`**/app#/chat/${bot.id}`);
  await expect.poll(() => shown(page)).toEqual([]);

  await page.bringToFront();
  await afterPushes(
    { message_id: 3, body: 'three' },
    { chat_id: -5, message_id: 4, body: 'of another' },
  ).toEqual([['news', 'of another', 'chat--5']]);
  expect(world.faults()).toEqual([]);
});

test('a window in the background does not suppress notifications', async () => {
  const page = await open(`#/chat/${bot.id}`);
  await page.locator('.chat-row', { hasText: 'news' }).waitFor();
  const streams: string[] = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.pathname === '/api/stream') streams.push(url.search);
  });
  const turn = (hidden: boolean) =>
    page.evaluate((now) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value: now });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
  await turn(true);
  // Waits, because the page may open its event stream after it has shown the chat list.
  await expect.poll(() => streams.at(-1)).toBe('?background=true');
  const send = (text: string) => world.service.bot(bot, 'sendMessage', { chat_id: alice.id, text });
  await resultOf(send('While hidden'));
  await page.getByRole('log').getByText('While hidden').waitFor();
  await turn(false);
  await expect.poll(() => streams.at(-1)).toBe('');
  await resultOf(send('In sight again'));
  await page.getByRole('log').getByText('In sight again').waitFor();
  expect(await page.getByRole('log').getByText('While hidden').count()).toBe(1);
  expect(world.faults()).toEqual([]);
});

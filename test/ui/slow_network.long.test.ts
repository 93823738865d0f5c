/** Tests which requests the list of chats waits for, and measures how soon the list appears on a slow network. */
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { resultOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

/** A slow 4G network. */
const network = {
  offline: false,
  latency: 150,
  downloadThroughput: 1_600_000 / 8,
  uploadThroughput: 750_000 / 8,
};
const cpu_slowdown = 4;
const loads = 5;
const chats_total = 30;

let world: World;
let alice: TestUser;
let group = 0;

onSharedWorld(async (opened) => {
  world = opened;
  alice = await world.service.newUser('alice');
  for (let n = 1; n <= chats_total; n++) group = await world.service.newGroup(alice, `Harbour ${n}`);
});

/** The calls that the list of chats waits for. */
const early = ['/api/chats', '/api/me'];

const send = (text: string) =>
  world.service.app(alice, 'POST', `/api/chats/${group}/messages`, { text }).then(resultOf);

/** Reloads the page. Returns the time in ms from the start of the load until the first frame with a chat. */
async function load(page: Page): Promise<number> {
  await page.reload({ waitUntil: 'commit' });
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const look = (now: number) =>
          document.querySelector('.chat-row')?.checkVisibility({ visibilityProperty: true })
            ? resolve(now)
            : requestAnimationFrame(look);
        requestAnimationFrame(look);
      }),
  );
}

test('the second visit downloads no code, and shows the list of chats', async () => {
  const page = await world.open(alice);
  await page.locator('.chat-row').first().waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', network);
  await session.send('Emulation.setCPUThrottlingRate', { rate: cpu_slowdown });
  const times: number[] = [];
  for (let n = 0; n < loads; n++) times.push(Math.round(await load(page)));
  const downloaded = await page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .map((entry) => entry as PerformanceResourceTiming)
      .filter(({ name, transferSize }) => /\.(js|css)$/.test(new URL(name).pathname) && transferSize > 0)
      .map(({ name }) => name),
  );
  const sorted = [...times].sort((a, b) => a - b);
  console.log(
    `ms until the list on a slow 4G network and a ${cpu_slowdown} times slower processor: ${times.join(', ')}; median ${sorted[Math.floor(loads / 2)]}`,
  );
  expect(downloaded).toEqual([]);
  expect(world.faults()).toEqual([]);
});

test('the page requests the profile and the list of chats before its code is loaded', async () => {
  const page = await world.open(alice);
  const asked = new Set<string>();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/api\/(me|chats)$|\/main-\w+\.js$/, async (route) => {
    asked.add(new URL(route.request().url()).pathname);
    await released;
    await route.continue();
  });
  await page.reload({ waitUntil: 'commit' });
  await expect.poll(() => [...asked].filter((path) => path.startsWith('/api/')).sort()).toEqual(early);
  release();
  await page.locator('.chat-row').first().waitFor();
  expect(world.faults()).toEqual([]);
});

test('the chat list appears before the event stream opens, and the open chat loads its messages afterwards', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  await page.getByRole('log').waitFor();
  const asked: string[] = [];
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/api\/stream/, async (route) => {
    await released;
    await route.continue();
  });
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.reload({ waitUntil: 'commit' });
  await page.locator('.chat-row').first().waitFor();
  await send('Fog at the pier');
  expect(asked).not.toContain(`/api/chats/${group}/messages`);
  release();
  await page.getByRole('log').getByText('Fog at the pier').waitFor();
  await page.locator('.chat-row').getByText('Fog at the pier').waitFor();
  expect(world.faults()).toEqual([]);
});

test('a message that arrives before a delayed event stream opens is shown in the open chat', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  await page.getByRole('log').waitFor();
  let isRefused = true;
  await page.route(/\/api\/stream/, (route) => (isRefused ? route.abort() : route.continue()));
  await send('The ferry leaves');
  await page.reload({ waitUntil: 'commit' });
  await page.getByRole('log').getByText('The ferry leaves').waitFor();
  await send('The ferry is late');
  isRefused = false;
  await page.getByRole('log').getByText('The ferry is late').waitFor();
  expect(world.faults()).toEqual([]);
});

/** Measures how soon the list of chats appears on a slow network and a slow processor after the first visit. */
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import type { TestUser } from '../support/service.js';
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

onSharedWorld(async (opened) => {
  world = opened;
  alice = await world.service.newUser('alice');
  for (let n = 1; n <= chats_total; n++) await world.service.newGroup(alice, `Harbour ${n}`);
});

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
  await page.context().close();
});

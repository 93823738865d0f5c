import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepBooks, keepQueue, makeChats, settingsFor, startWorld, type World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

test('an update is delivered before the next sweep, even if it arrives while a worker releases the lease of the bot', async ({
  onTestFinished,
}) => {
  const { node } = await world.worker();
  // The receiver answers so late that `check` has stopped waiting for the drain. Until the drain ends, the worker then
  // does not remember wake-ups.
  const books = await keepBooks(({ text }) => sleep(text.endsWith('again') ? 0 : 1_300, 200));
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 1);
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  let left = () => {};
  node.hooks.call = async (name, run) => {
    const result = await run();
    if (name === 'webhooks/advance' && (result as { left?: boolean }).left) {
      left();
      // Delays the reply of the script, so that the wake-up arrives before the worker knows that it has released the
      // lease.
      await sleep(150);
    }
    return result;
  };
  const took: number[] = [];
  // A busy machine may delay single updates, but not all.
  for (let n = 0; n < 10 && Math.min(...took) > 700; n++) {
    const leaving = new Promise<void>((resolve) => {
      left = resolve;
    });
    await say(0, `${n}`);
    await leaving;
    const began = performance.now();
    await say(0, `${n} again`);
    await books.tookIn(2 * n + 2);
    took.push(performance.now() - began);
    await sleep(400);
  }
  // A bot is woken at most once in 700 ms. After a lost wake-up, the update would therefore take longer than 700 ms.
  expect(Math.min(...took)).toBeLessThan(700);
});

test('the next update of a bot needs no wake-up if the bot was just served', async ({ onTestFinished }) => {
  const { worker } = await world.worker();
  const books = await keepBooks();
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 1);
  const { client } = world.front.connection;
  const fences = new Set<string | null>();
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  for (let n = 1; n <= 12; n++) {
    await say(0, `${n}`);
    await books.tookIn(n);
    // Waits, because a drain subscribes to hints only after it has run for a moment.
    await sleep(30);
    fences.add(await client.hget(world.cluster.keys.queueState(bot.id), 'fence'));
  }
  // One drain should serve several updates. On a busy machine, some drains end before the next update arrives.
  expect(fences.size).toBeLessThan(10);
  // The drain ends when no more updates arrive, so that another worker may serve the bot.
  await expect.poll(() => worker.stats().drains).toBe(0);
});

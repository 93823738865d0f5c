import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepBooks, keepQueue, makeChats, settingsFor, startWorld, type World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

test('a worker with the maximum number of bots takes another bot only after it has finished one of them', async ({
  onTestFinished,
}) => {
  const { worker } = await world.worker({ drainsMax: 2 });
  onTestFinished(() => worker.stop());
  const answers: Array<() => void> = [];
  const books = await keepBooks(() => new Promise((resolve) => answers.push(() => resolve(200))));
  onTestFinished(() => books.close());
  const bots = 6;
  for (let n = 0; n < bots; n++) {
    const { bot, say } = await makeChats(world.front, 1);
    await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
    await say(0, `${n}`);
  }
  for (let n = 0; n < bots; n++) {
    await expect.poll(() => books.arrivals.length).toBeGreaterThanOrEqual(Math.min(n + 2, bots));
    answers.shift()?.();
  }
  await books.tookIn(bots);
  expect(books.mostOpen).toBe(2);
});

test('if a worker is stopped while it acquires the lease of a bot, the worker releases the bot', async ({
  onTestFinished,
}) => {
  const { node, worker } = await world.worker();
  const books = await keepBooks(() => sleep(1_300, 200));
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 1);
  let stopped: Promise<void> | undefined;
  node.hooks.call = async (name, run) => {
    const result = await run();
    if (name === 'webhooks/lease') stopped ??= worker.stop();
    return result;
  };
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await say(0, 'a');
  await expect.poll(() => stopped !== undefined).toBe(true);
  await stopped;
  expect(books.open).toBe(0);
  const { client } = world.front.connection;
  expect(await client.hget(world.cluster.keys.queueState(bot.id), 'leased')).toBeNull();
});

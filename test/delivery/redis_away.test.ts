/** Redis does not answer in the middle of a step: what a worker had to tell is told later, whatever has happened since. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { keepBooks, keepQueue, makeChats, settingsFor, startWorld, type World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

test('what is parked in a step that fails is not lost when its chat fails meanwhile', {
  timeout: 30_000,
}, async ({ onTestFinished }) => {
  let refuse = (_: number) => {};
  const refused = new Promise<number>((resolve) => {
    refuse = resolve;
  });
  let heard = () => {};
  const failed = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const { node, worker } = await world.worker({ onOutcome: () => heard() });
  onTestFinished(() => worker.stop());
  const books = await keepBooks(({ text }) => (text === '0' && books.arrivals.length === 1 ? refused : 200));
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 1);
  // More than half of what a worker holds, so that it parks what waits behind the first.
  const said = limits.webhook_held_entries_max / 2 + 20;
  for (let n = 0; n < said; n++) await say(0, `${n}`);
  let steps = 0;
  node.hooks.call = async (name, run) => {
    // The lease takes as much as one step, a second step more; the third one parks.
    if (name !== 'webhooks/advance' || ++steps !== 3) return run();
    refuse(500);
    await failed;
    throw new Error('Redis is away');
  };
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await books.tookIn(said, 15_000);
  expect(node.errors.map(String)).toContain('Error: Redis is away');
  expect(books.taken.map(({ text }) => text)).toEqual(Array.from({ length: said }, (_, n) => `${n}`));
});

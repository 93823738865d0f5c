import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Delivery, Step } from '../../src/store/webhooks/deliveries.js';
import { keepBooks, keepQueue, makeChats, settingsFor, startWorld, type World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

test('the updates of a killed worker are delivered by another worker, in order', async ({
  onTestFinished,
}) => {
  const first = await world.worker();
  let slow = true;
  const books = await keepBooks(() => (slow ? sleep(60_000, 200, { ref: false }) : 200));
  onTestFinished(() => books.close());
  const { bot, users, say } = await makeChats(world.front, 4);
  await world.front.store.webhooks.set(bot.id, settingsFor(books, { maxConnections: 3 }), keepQueue);
  for (let n = 0; n < 3; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  await expect.poll(() => books.open).toBe(3);
  slow = false;
  await first.kill();
  await world.worker();
  await books.tookIn(12);
  for (const { id } of users)
    expect(books.taken.filter(({ chat }) => chat === id).map(({ text }) => text)).toEqual(['0', '1', '2']);
});

test('after another worker has taken over an expired lease, the previous worker changes nothing', async ({
  onTestFinished,
}) => {
  const books = await keepBooks();
  onTestFinished(() => books.close());
  const { deliveries, queues, webhooks } = world.front.store;
  const { bot, say } = await makeChats(world.front, 1);
  await webhooks.set(bot.id, settingsFor(books), keepQueue);
  // Turns off wake-ups and sweeps, so that no other worker takes the bot.
  const { hooks } = world.front;
  const { wake } = hooks;
  hooks.wake = () => undefined;
  onTestFinished(() => {
    hooks.wake = wake;
  });
  await say(0, 'one');
  const mine = await deliveries.lease(bot.id, 10);
  if (typeof mine === 'string') throw new Error(mine);
  expect(await deliveries.lease(bot.id, 10)).toBe('leased');
  const { client } = world.front.connection;
  await client.hset(world.cluster.keys.queueState(bot.id), 'leased', '1');
  const theirs = await deliveries.lease(bot.id, 10);
  if (typeof theirs === 'string') throw new Error(theirs);
  const step: Omit<Step, 'fence'> = {
    since: mine.since,
    hook: mine.hook,
    after: mine.after,
    safe: mine.safe,
    leave: 'stay',
    ...{
      acked: [{ delivery: theirs.fresh[0] as Delivery, parked: false }],
      repeated: false,
      failed: [],
      chats: 0,
      updates: 0,
    },
    error: '',
    gone: '',
    holdMs: 0,
    probes: 0,
  };
  expect(await deliveries.advance(bot.id, { ...step, fence: mine.fence })).toBeNull();
  expect(await deliveries.deadLetter(bot.id, mine.fence, 'expired', [theirs.fresh[0]?.id ?? ''])).toBe(false);
  expect((await queues.info(bot.id)).pending).toBe(1);
  expect(await deliveries.advance(bot.id, { ...step, fence: theirs.fence })).not.toBeNull();
  expect((await queues.info(bot.id)).pending).toBe(0);
});

test('updates arrive within three seconds even if the wake queue loses all its keys', async ({
  onTestFinished,
}) => {
  await world.worker();
  const books = await keepBooks();
  onTestFinished(() => books.close());
  const { client } = world.front.connection;
  let wiped = 0;
  const wipe = async () => {
    const keys = await client.keys('*:doorbell:*');
    wiped += keys.length;
    if (keys.length > 0) await client.del(...keys);
  };
  const late: number[] = [];
  // A worker gets hints about a bot that it has just served, and needs no wake-up for this bot. Each round therefore
  // uses a new bot.
  for (let n = 0; n < 8; n++) {
    const { bot, say } = await makeChats(world.front, 1);
    await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
    await wipe();
    const began = performance.now();
    await say(0, `${n}`);
    await wipe();
    await books.tookIn(n + 1);
    late.push(performance.now() - began);
  }
  expect(wiped).toBeGreaterThan(8);
  // A busy machine may delay single updates, but not most of them.
  expect(late.sort((a, b) => a - b)[4]).toBeLessThan(3_000);
});

test('a worker that stops cleanly releases its bots immediately', async ({ onTestFinished }) => {
  const own = await world.worker();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const books = await keepBooks(() => released.then(() => 200));
  onTestFinished(() => books.close());
  const { bot, users, say } = await makeChats(world.front, 3);
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await Promise.all(users.map((_, person) => say(person, 'a')));
  await expect.poll(() => books.open).toBe(3);
  const stopping = own.worker.stop();
  release();
  await stopping;
  await Promise.all(users.map((_, person) => say(person, 'b')));
  await books.tookIn(6);
  expect(books.arrivals).toHaveLength(6);
});

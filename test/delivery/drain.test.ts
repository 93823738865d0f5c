import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fastest } from '../support/times.js';
import { keepBooks, keepQueue, makeChats, refuseSome, settingsFor, startWorld, type World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
  await Promise.all([world.worker(), world.worker()]);
});
afterAll(() => world.close());

test('an update reaches its receiver immediately', async ({ onTestFinished }) => {
  const books = await keepBooks();
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 1);
  await world.front.store.webhooks.set(bot.id, settingsFor(books, { secretToken: 'tell-me' }), keepQueue);
  const took = await fastest(500, async (index) => {
    await say(0, 'hello');
    await books.tookIn(index + 1);
  });
  expect(took).toBeLessThan(500);
  const [arrival] = books.arrivals;
  expect(arrival?.text).toBe('hello');
  expect(arrival?.headers['content-type']).toBe('application/json');
  expect(arrival?.headers['x-service-bot-api-secret-token']).toBe('tell-me');
  expect(arrival?.headers['x-service-signature']).toBe(
    createHmac('sha256', 'tell-me')
      .update(arrival?.body as Buffer)
      .digest('hex'),
  );
  expect(arrival?.headers['webhook-id']).toBe(`${bot.id}-${arrival?.updateId}`);
  await expect.poll(async () => (await world.front.store.queues.info(bot.id)).pending).toBe(0);
});

test('updates of each chat arrive in order despite failures', async ({ onTestFinished }) => {
  const [people, each] = [12, 25];
  const books = await keepBooks(refuseSome());
  onTestFinished(() => books.close());
  const { bot, users, say } = await makeChats(world.front, people);
  await world.front.store.webhooks.set(bot.id, settingsFor(books, { maxConnections: 10 }), keepQueue);
  for (let n = 0; n < each; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  await books.tookIn(people * each);
  const inOrder = Array.from({ length: each }, (_, n) => `${n}`);
  for (const { id } of users) {
    const taken = books.taken.filter(({ chat }) => chat === id);
    expect(taken.map(({ text }) => text)).toEqual(inOrder);
  }
  expect(books.arrivals.length).toBeGreaterThan(people * each);
  expect(books.mostOpen).toBeLessThanOrEqual(10);
  await expect.poll(async () => (await world.front.store.queues.info(bot.id)).pending).toBe(0);
});

test('two workers together never exceed the bot’s max_connections, even when this limit changes', async ({
  onTestFinished,
}) => {
  let release = () => {};
  let held = Promise.resolve();
  const books = await keepBooks(() => held.then(() => sleep(20, 200)));
  onTestFinished(() => books.close());
  const { webhooks } = world.front.store;
  const { bot, users, say } = await makeChats(world.front, 12);
  await webhooks.set(bot.id, settingsFor(books, { maxConnections: 1 }), keepQueue);
  const sayAll = () => Promise.all(users.flatMap((_, person) => [say(person, 'a'), say(person, 'b')]));
  await sayAll();
  await books.tookIn(24);
  expect(books.mostOpen).toBe(1);
  await sayAll();
  await books.tookIn(30);
  await webhooks.set(bot.id, settingsFor(books, { maxConnections: 5 }), keepQueue);
  await books.tookIn(48);
  // The receiver answers only when all allowed connections are in use.
  held = new Promise((resolve) => {
    release = resolve;
  });
  await sayAll();
  await expect.poll(() => books.open).toBe(5);
  await sleep(200);
  release();
  await books.tookIn(72);
  expect(books.mostOpen).toBe(5);
});

test('a slow chat does not delay other chats', async ({ onTestFinished }) => {
  let release = (_: number) => {};
  const held = new Promise<number>((resolve) => {
    release = resolve;
  });
  const books = await keepBooks(({ text }) => (text === 'slow' ? held : 200));
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 2);
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await say(0, 'slow');
  await expect.poll(() => books.open).toBe(1);
  for (let n = 0; n < 5; n++) await say(0, `behind ${n}`);
  for (let n = 0; n < 5; n++) await say(1, `other ${n}`);
  await books.tookIn(5);
  expect(books.taken.map(({ text }) => text)).toEqual([0, 1, 2, 3, 4].map((n) => `other ${n}`));
  release(200);
  await books.tookIn(11);
  expect(books.taken.slice(5).map(({ text }) => text)).toEqual([
    'slow',
    ...[0, 1, 2, 3, 4].map((n) => `behind ${n}`),
  ]);
});

test('while a receiver is down, it gets only one request at a time', async ({ onTestFinished }) => {
  let down = true;
  const books = await keepBooks(() => (down ? 503 : 200));
  onTestFinished(() => books.close());
  const { bot, users, say } = await makeChats(world.front, 30);
  await world.front.store.webhooks.set(bot.id, settingsFor(books, { maxConnections: 10 }), keepQueue);
  await Promise.all(users.map((_, person) => say(person, 'first')));
  await expect.poll(() => books.arrivals.length).toBeGreaterThan(8);
  await sleep(1_000);
  const before = books.arrivals.length;
  const began = performance.now();
  await Promise.all(users.map((_, person) => say(person, 'second')));
  await sleep(1_500);
  // When the receiver failed, it had some open requests. Afterwards it gets only occasional retries.
  expect(before).toBeLessThan(30);
  const retries = 1 + (performance.now() - began) / 750;
  expect(books.arrivals.length - before).toBeLessThanOrEqual(retries);
  const { error, pending } = await world.front.store.queues.info(bot.id);
  expect(error?.message).toBe('Wrong response from the webhook: 503 Service Unavailable');
  expect(pending).toBe(60);
  down = false;
  await books.tookIn(60);
  for (const { id } of users)
    expect(books.taken.filter(({ chat }) => chat === id).map(({ text }) => text)).toEqual([
      'first',
      'second',
    ]);
});

test('a retry is not delayed by deliveries to other chats', async ({ onTestFinished }) => {
  const tries: number[] = [];
  const books = await keepBooks(({ text }) => {
    if (text !== 'sick') return 200;
    tries.push(performance.now());
    return tries.length % 3 === 0 ? 200 : 500;
  });
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 2);
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  const waits: number[] = [];
  // A busy machine may delay single retries, but not all.
  for (let n = 1; n <= 10 && Math.min(...waits) > 1_500; n++) {
    await say(0, 'sick');
    await expect.poll(() => tries.length).toBeGreaterThanOrEqual(3 * n - 1);
    await sleep(700);
    await say(1, 'well');
    await books.tookIn(2 * n);
    waits.push((tries.at(-1) as number) - (tries.at(-2) as number));
  }
  // After the last update of a bot, a worker keeps serving the bot for some seconds. A retry must not wait until the
  // worker stops serving the bot.
  expect(Math.min(...waits)).toBeLessThan(1_500);
});

/**
 * Tests a worker whose step in Redis fails or is slow. The next step reports the results of the failed step again,
 * together with newer results.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { keepBooks, keepQueue, makeChats, settingsFor, startWorld, type World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

test('a worker loses no updates if Redis fails during a move of updates to the parked set', async ({
  onTestFinished,
}) => {
  let refuse = (_: number) => {};
  const refused = new Promise<number>((resolve) => {
    refuse = resolve;
  });
  let received = () => {};
  const failed = new Promise<void>((resolve) => {
    received = resolve;
  });
  const { node, worker } = await world.worker({ onOutcome: () => received() });
  onTestFinished(() => worker.stop());
  const books = await keepBooks(({ text }) => (text === '0' && books.arrivals.length === 1 ? refused : 200));
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 1);
  // Sends so many updates of one chat that they fill more than half of the buffer of the worker. The first update
  // fails, so the worker moves the other updates to the parked set.
  const said = limits.webhook_held_entries_max / 2 + 20;
  for (let n = 0; n < said; n++) await say(0, `${n}`);
  let steps = 0;
  node.hooks.call = async (name, run) => {
    // The call that takes the lease also reads a batch of updates. The second step reads another batch, and the third
    // step moves updates to the parked set.
    if (name !== 'webhooks/advance' || ++steps !== 3) return run();
    refuse(500);
    await failed;
    throw new Error('Redis is away');
  };
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await books.tookIn(said);
  expect(node.errors.map(String)).toContain('Error: Redis is away');
  expect(books.taken.map(({ text }) => text)).toEqual(Array.from({ length: said }, (_, n) => `${n}`));
});

test('if the reply to a step is lost, the queue still counts the bytes of its updates correctly', async ({
  onTestFinished,
}) => {
  let accept = (_: number) => {};
  const accepted = new Promise<number>((resolve) => {
    accept = resolve;
  });
  const { node, worker } = await world.worker();
  onTestFinished(() => worker.stop());
  const slow = 'x'.repeat(500);
  const books = await keepBooks(({ text }) => (text === slow ? accepted : 200));
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 2);
  const { client } = world.front.connection;
  const { keys } = world.cluster;
  const pending = () => client.xlen(keys.queue(bot.id));
  let lost = false;
  node.hooks.call = async (name, run) => {
    const reply = await run();
    if (name !== 'webhooks/advance' || lost || (await pending()) !== 1) return reply;
    // Redis has acknowledged the update `quick`, but the worker does not get the reply. The next step therefore
    // acknowledges `quick` again, together with the slow update.
    lost = true;
    accept(200);
    await books.tookIn(2);
    throw new Error('the reply is lost');
  };
  await say(0, slow);
  await say(1, 'quick');
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await books.tookIn(2);
  await expect.poll(pending).toBe(0);
  expect(lost).toBe(true);
  expect(await client.hget(keys.queueState(bot.id), 'bytes')).toBe('0');
});

test('a receiver is not marked as gone if it accepts an update while an earlier 410 is being recorded', async ({
  onTestFinished,
}) => {
  let accept = (_: number) => {};
  const accepted = new Promise<number>((resolve) => {
    accept = resolve;
  });
  let take = () => {};
  const taken = new Promise<void>((resolve) => {
    take = resolve;
  });
  let telling = false;
  let mine = 0;
  const { node, worker } = await world.worker({
    onOutcome(queue, _, outcome) {
      // Ignores the bots of earlier tests, because they may still have updates.
      if (queue !== mine) return;
      if (outcome?.kind === 'answered' && outcome.status === 200) take();
      else telling = true;
    },
  });
  onTestFinished(() => worker.stop());
  const answers = [410];
  // The receiver does not answer retries, so they have no effect.
  const books = await keepBooks(({ text }) =>
    text === 'well' ? accepted : (answers.shift() ?? new Promise<number>(() => undefined)),
  );
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(world.front, 2);
  mine = bot.id;
  node.hooks.call = async (name, run) => {
    if (name === 'webhooks/advance' && telling) {
      accept(200);
      await taken;
    }
    return run();
  };
  await say(0, 'well');
  await say(1, 'gone');
  await world.front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await books.tookIn(1);
  const { client } = world.front.connection;
  const { keys } = world.cluster;
  // Waits until the update is acknowledged, which happens after the 410 was recorded.
  await expect.poll(() => client.xlen(keys.queue(bot.id))).toBe(1);
  const gone = async () => Number(await client.hget(keys.queueState(bot.id), 'gone'));
  expect(await gone()).toBe(0);
});

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deliveryLimits as limits } from '../../src/delivery/limits.js';
import { poll, shown } from '../support/store.js';
import { keepBooks, keepQueue, makeChats, settingsFor, startWorld, type World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
  await world.worker();
});
afterAll(() => world.close());

test('after a webhook is deleted, polls get the updates that were not delivered to the webhook', async ({
  onTestFinished,
}) => {
  const books = await keepBooks(({ text }) => (text === 'never' ? 500 : 200));
  onTestFinished(() => books.close());
  const { front } = world;
  const { webhooks } = front.store;
  const { bot, say } = await makeChats(front, 2);
  await say(0, 'a');
  await say(1, 'b');
  expect(shown(await poll(front, bot))).toEqual(['a', 'b']);
  await webhooks.set(bot.id, settingsFor(books), keepQueue);
  await books.tookIn(2);
  await say(0, 'never');
  await say(0, 'behind');
  await say(1, 'c');
  await books.tookIn(3);
  await expect.poll(async () => (await front.store.queues.info(bot.id)).pending).toBe(2);
  expect(await webhooks.remove(bot.id, false)).toBe(true);
  await say(1, 'd');
  await expect.poll(async () => shown(await poll(front, bot))).toEqual(['never', 'behind', 'd']);
  expect(books.taken.map(({ text }) => text).sort()).toEqual(['a', 'b', 'c']);
});

test('while a bot switches between polling and webhook under load, each update arrives once and in order', async ({
  onTestFinished,
}) => {
  const books = await keepBooks(() => sleep(5, 200));
  onTestFinished(() => books.close());
  const { front } = world;
  const { webhooks } = front.store;
  const { bot, users, say } = await makeChats(front, 3);
  const said = 40;
  const got: string[] = [];
  const talk = (async () => {
    for (let n = 0; n < said; n++) {
      await Promise.all(users.map((_, person) => say(person, `${n}`)));
      await sleep(20);
    }
  })();
  let talking = true;
  talk.finally(() => {
    talking = false;
  });
  let taken = 0;
  const collect = () => {
    for (const { chat, text } of books.taken.slice(taken)) got.push(`${chat} ${text}`);
    taken = books.taken.length;
  };
  for (let round = 0; talking || round < 4; round++) {
    await webhooks.set(bot.id, settingsFor(books), keepQueue);
    await sleep(150);
    await webhooks.remove(bot.id, false);
    let next = 0;
    for (let n = 0; n < 6; n++) {
      const found = await poll(front, bot, next);
      // Records the deliveries of the worker before the updates of the poll. The poll returns updates only after all
      // deliveries are acknowledged, so the deliveries came first.
      collect();
      for (const { updateId, message } of found) {
        got.push(`${message.chat.user} ${message.record.content.text}`);
        next = updateId + 1;
      }
      await sleep(30);
    }
    if (next > 0) await poll(front, bot, next);
  }
  await talk;
  await webhooks.set(bot.id, settingsFor(books), keepQueue);
  await expect.poll(async () => (await front.store.queues.info(bot.id)).pending).toBe(0);
  collect();
  for (const { id } of users) {
    const own = got.filter((each) => each.startsWith(`${id} `));
    expect(own).toEqual(Array.from({ length: said }, (_, n) => `${id} ${n}`));
  }
});

test('drop_pending_updates removes all pending updates, but no later updates', async ({ onTestFinished }) => {
  const books = await keepBooks(({ text }) => (text === 'old' ? 500 : 200));
  onTestFinished(() => books.close());
  const { front } = world;
  const { webhooks } = front.store;
  const { bot, users, say } = await makeChats(front, 3);
  await Promise.all(users.map((_, person) => say(person, 'old')));
  await webhooks.set(bot.id, settingsFor(books), { drop: true, mask: null });
  expect((await front.store.queues.info(bot.id)).pending).toBe(0);
  await say(0, 'new');
  await books.tookIn(1);
  // The parked updates of failed chats are dropped too, so they do not delay later updates.
  await Promise.all(users.map((_, person) => say(person, 'old')));
  await expect.poll(() => books.arrivals.length).toBeGreaterThan(6);
  await webhooks.set(bot.id, settingsFor(books), { drop: true, mask: null });
  await Promise.all(users.map((_, person) => say(person, 'newer')));
  await books.tookIn(4);
  await expect.poll(async () => (await front.store.queues.info(bot.id)).pending).toBe(0);
});

test('after a webhook is deleted, polls get all updates that the receiver has not acknowledged', async ({
  onTestFinished,
}) => {
  const books = await keepBooks(() => new Promise<number>(() => undefined));
  onTestFinished(() => books.close());
  const { front } = world;
  const { bot, users, say } = await makeChats(front, 3);
  await front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await Promise.all(users.map((_, person) => say(person, 'a')));
  await expect.poll(() => books.open).toBe(3);
  await front.store.webhooks.remove(bot.id, false);
  // A poll returns nothing while requests to the receiver are open. These requests may still succeed, and the bot would
  // then get their updates twice.
  expect(await poll(front, bot)).toEqual([]);
  await expect.poll(async () => shown(await poll(front, bot))).toEqual(['a', 'a', 'a']);
  await expect.poll(() => books.open).toBe(0);
});

test('if a node dies after committing a webhook change, the sweep drops the pending updates only once', async () => {
  const { front } = world;
  const { queues, sweep, webhooks } = front.store;
  const { bot, say } = await makeChats(front, 1);
  await say(0, 'a');
  const books = await keepBooks();
  const { hooks } = front;
  const call = hooks.call;
  hooks.call = (name, run) => (name === 'webhooks/switch' ? Promise.reject(new Error('dead')) : run());
  await expect(webhooks.set(bot.id, settingsFor(books), { drop: true, mask: null })).rejects.toThrow('dead');
  hooks.call = call;
  expect((await queues.info(bot.id)).pending).toBe(1);
  sweep.start();
  await expect.poll(async () => (await queues.info(bot.id)).pending).toBe(0);
  await say(0, 'b');
  await books.tookIn(1);
  expect(books.taken.map(({ text }) => text)).toEqual(['b']);
  await books.close();
});

test('the sweep does not switch a queue to settings that workers cannot read yet', async ({
  onTestFinished,
}) => {
  const { front } = world;
  const { node, worker } = await world.worker();
  onTestFinished(() => worker.stop());
  const books = await keepBooks();
  onTestFinished(() => books.close());
  const { bot } = await makeChats(front, 1);
  await front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  // While the sweep refreshes the bot's copy in Redis, a call commits a change. The call refreshes the copy only after
  // the sweep has finished.
  let sweepEnded = () => {};
  const swept = new Promise<void>((resolve) => {
    sweepEnded = resolve;
  });
  const path = '/changed';
  let changed: Promise<boolean> | undefined;
  const { call: frontCall } = front.hooks;
  const { call: nodeCall } = node.hooks;
  node.hooks.call = async (name, run) => {
    if (name !== 'control/write' || changed !== undefined) return run();
    const committed = new Promise<void>((resolve) => {
      front.hooks.call = async (_, innerRun) => {
        resolve();
        await swept;
        return innerRun();
      };
    });
    changed = front.store.webhooks.set(bot.id, settingsFor(books, { url: books.url + path }), keepQueue);
    await committed;
    return run();
  };
  await node.store.webhooks.refresh(bot.id, 0);
  const { client } = node.connection;
  const hook = Number(await client.hget(world.cluster.keys.queueState(bot.id), 'hook'));
  const found = await node.store.webhooks.find(bot.id);
  expect(changed).toBeDefined();
  expect(found?.version).toBeGreaterThanOrEqual(hook);
  sweepEnded();
  [front.hooks.call, node.hooks.call] = [frontCall, nodeCall];
  expect(await changed).toBe(true);
  expect((await node.store.webhooks.find(bot.id))?.url).toBe(books.url + path);
});

test('a webhook is removed after its receiver has answered 410 for 23 hours', async ({ onTestFinished }) => {
  const books = await keepBooks(() => 410);
  onTestFinished(() => books.close());
  const { front } = world;
  const { bot, users, say } = await makeChats(front, 1);
  await front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await say(0, 'a');
  const state = world.cluster.keys.queueState(bot.id);
  const { client } = front.connection;
  await expect.poll(() => client.hget(state, 'gone')).not.toBeNull();
  await client.hset(state, 'gone', Date.now() - 23 * 3_600_000 - 60_000);
  await expect.poll(() => front.store.webhooks.find(bot.id)).toBeNull();
  const notices = await front.db.query<{ user_id: number; notice: object }>(
    "select user_id, notice from notices where notice ->> 'kind' = 'webhook_removed'",
  );
  expect(notices).toMatchObject([
    { user_id: users[0]?.id, notice: { bot: bot.id, username: bot.sender.profile.u } },
  ]);
  await expect.poll(async () => shown(await poll(front, bot))).toEqual(['a']);
});

test('an update that is not delivered for 24 hours becomes a dead letter with a reason', async ({
  onTestFinished,
}) => {
  const books = await keepBooks(() => 500);
  onTestFinished(() => books.close());
  const { front } = world;
  const { bot, say } = await makeChats(front, 1);
  await say(0, 'a');
  const { keys } = world.cluster;
  const { client } = front.connection;
  const [[id, fields]] = (await client.xrange(keys.queue(bot.id), '-', '+')) as [[string, string[]]];
  expect(fields[2]).toBe('t');
  // Replaces the update in the queue with a copy that was created one day earlier.
  const raw = (await client.xrangeBuffer(keys.queue(bot.id), '-', '+')) as unknown as [[Buffer, Buffer[]]];
  const old = [...raw[0][1]];
  old[3] = Buffer.from(`${Date.now() - 24 * 3_600_000 - 1_000}`);
  await client.del(keys.queue(bot.id));
  await client.xadd(keys.queue(bot.id), id, ...(old as never[]));
  await front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  await expect.poll(async () => (await front.store.queues.info(bot.id)).pending).toBe(0);
  expect(books.arrivals).toEqual([]);
  await world.cluster.flush();
  const rows = await front.db.query<{ record: Buffer }>('select record from dead_updates where bot_id = $1', [
    bot.id,
  ]);
  expect(rows).toHaveLength(1);
  expect(rows[0]?.record.includes('expired')).toBe(true);
});

test('an update over the size limit becomes a dead letter with a reason', async ({ onTestFinished }) => {
  const books = await keepBooks();
  onTestFinished(() => books.close());
  const { front } = world;
  const { bot, say } = await makeChats(front, 1);
  await front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
  // Lowers the size limit, because no message reaches the real limit (test/api/webhooks.test.ts).
  const bound = limits.webhook_body_bytes_max;
  const lowered = (bytes: number) => Object.assign(limits, { webhook_body_bytes_max: bytes });
  onTestFinished(() => void lowered(bound));
  lowered(20_000);
  await say(0, 'x'.repeat(20_000));
  await say(0, 'behind');
  await books.tookIn(1);
  expect(books.arrivals.map(({ text }) => text)).toEqual(['behind']);
  await world.cluster.flush();
  const letters = async () => (await front.store.replays.list(bot.id, 0, 10, 1_000)).items;
  await expect.poll(async () => (await letters()).map(({ reason }) => reason)).toEqual(['too_large']);
  await expect.poll(async () => (await front.store.queues.info(bot.id)).pending).toBe(0);
});

/**
 * Tests hints that contain copies of updates. A worker sends these copies without reading the queue. No update is lost,
 * repeated or delayed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deliveryLimits } from '../../src/delivery/limits.js';
import { queueKeys } from '../../src/store/core/script_keys.js';
import { storeLimits } from '../../src/store/limits.js';
import type { Step } from '../../src/store/webhooks/deliveries.js';
import type { Hint } from '../../src/store/webhooks/hints.js';
import { longTest } from '../support/tiers.js';
import {
  type Answer,
  keepBooks,
  keepQueue,
  makeChats,
  settingsFor,
  startWorld,
  type World,
} from './world.js';

type OnFinished = (end: () => Promise<void>) => void;

async function watchedWorker(world: World) {
  const { node, kill } = await world.worker();
  // Starts the cache of tokens, because a worker accepts copies only while this cache is valid.
  await node.store.auth.start();
  const { deliveries } = node.store;
  const { advance, listen } = deliveries;
  let running = 0;
  const passAll = (hint: Hint, pass: (hint: Hint) => void) => pass(hint);
  const watched = {
    node,
    kill,
    gate: async (_: Step) => {},
    /** The ids of the updates that steps of the worker have read from Redis. */
    read: new Set<string>(),
    /** Maps each queue to the id below which its updates were dropped. The last step of the worker returned this id. */
    dropped: new Map<number, number>(),
    onHint: passAll,
    /**
     * Blocks all steps, or the steps that `which` selects, until the returned function is called. Waits for the steps
     * that have already begun.
     */
    async blockSteps(which: (step: Step) => boolean = () => true) {
      let open = () => {};
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      watched.gate = async (step) => (which(step) ? opened : undefined);
      await expect.poll(() => running).toBe(0);
      return () => {
        watched.gate = async () => {};
        open();
      };
    },
    passHints() {
      watched.onHint = passAll;
    },
  };
  Object.assign(deliveries, {
    async advance(...given: Parameters<typeof advance>) {
      await watched.gate(given[1]);
      running++;
      const advanced = await advance(...given).finally(() => running--);
      for (const { id } of advanced?.fresh ?? []) watched.read.add(id);
      watched.dropped.set(given[0], advanced?.dropped ?? 0);
      return advanced;
    },
    listen: (bot: number, hear: (hint: Hint) => void) => listen(bot, (hint) => watched.onHint(hint, hear)),
  });
  return watched;
}

async function servedBot(world: World, people: number, onTestFinished: OnFinished, answer?: Answer) {
  const { front, cluster } = world;
  const books = await keepBooks(answer);
  onTestFinished(() => books.close());
  const chats = await makeChats(front, people);
  await front.store.webhooks.set(chats.bot.id, settingsFor(books, { maxConnections: 1 }), keepQueue);
  const pending = async () => (await front.store.queues.info(chats.bot.id)).pending;
  const channel = cluster.keys.botChannel(chats.bot.id);
  const subscribers = async () =>
    Number(((await front.connection.client.call('PUBSUB', 'SHARDNUMSUB', channel)) as unknown[])[1]);
  let before = 0;
  const warmUp = async () => {
    await chats.say(0, 'warm-up');
    await books.tookIn(++before);
    await expect.poll(pending).toBe(0);
    return subscribers();
  };
  // Retries, because a worker may stop serving a bot before it has subscribed to the bot’s hints.
  await expect.poll(warmUp).toBe(1);
  await warmUp();
  return {
    ...{ ...chats, books, pending },
    texts: () => books.arrivals.slice(before).map(({ text }) => text),
    arrivals: () => books.arrivals.slice(before),
    took: (count: number) => books.tookIn(before + count),
  };
}

let world: World;
let worker: Awaited<ReturnType<typeof watchedWorker>>;
beforeAll(async () => {
  world = await startWorld();
  worker = await watchedWorker(world);
});
afterAll(() => world.close());

const numbers = (count: number) => Array.from({ length: count }, (_, n) => `${n}`);

test('if a hint contains a copy of an update, the worker sends this copy', async ({ onTestFinished }) => {
  const { say, pending, texts, arrivals, took } = await servedBot(world, 1, onTestFinished);
  const copied = () => arrivals().filter(({ updateId }) => !worker.read.has(`${updateId}`));
  let said = 0;
  // A step may read an update before the hint about this update arrives, especially on a busy machine.
  while (said < 5 || (copied().length === 0 && said < 100)) {
    await say(0, `${said++}`);
    await took(said);
    await expect.poll(pending).toBe(0);
  }
  expect(texts()).toEqual(numbers(said));
  expect(copied().length).toBeGreaterThan(0);
});

test('the copy of an update in a hint equals the stored update', async ({ onTestFinished }) => {
  let release = (_: number) => {};
  const held = new Promise<number>((resolve) => {
    release = resolve;
  });
  const served = await servedBot(world, 1, onTestFinished, ({ text }) => (text === 'held' ? held : 200));
  const hints: Hint[] = [];
  worker.onHint = (hint, pass) => {
    hints.push(hint);
    pass(hint);
  };
  onTestFinished(async () => worker.passHints());
  await served.say(0, 'held');
  await expect.poll(() => hints.length).toBeGreaterThan(0);
  const { client } = world.front.connection;
  const stored = await client.xrangeBuffer(world.cluster.keys.queue(served.bot.id), '-', '+');
  const plain = (row: unknown) => JSON.stringify(row);
  expect(hints.map(({ copy }) => plain(copy?.row))).toEqual(stored.map(plain));
  release(200);
  await served.took(1);
});

test('no update is lost if a hint is lost', async ({ onTestFinished }) => {
  const { say, texts, took } = await servedBot(world, 1, onTestFinished);
  let lost = 0;
  worker.onHint = (hint, pass) => {
    if (lost++ > 0) pass(hint);
  };
  onTestFinished(async () => worker.passHints());
  await say(0, 'lost');
  await say(0, 'next');
  await took(2);
  // A step may read an update before the hint about the update arrives.
  await expect.poll(() => lost).toBe(2);
  expect(texts()).toEqual(['lost', 'next']);
});

test('updates arrive in order while Redis disconnects the subscriber', async ({ onTestFinished }) => {
  const [people, each] = [4, 40];
  const { users, say, pending, arrivals, took } = await servedBot(world, people, onTestFinished);
  const { client } = world.front.connection;
  for (let n = 0; n < each; n++) {
    if (n % 10 === 5) await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await Promise.all(users.map((_, person) => say(person, `${n}`)));
  }
  await took(people * each);
  for (const { id } of users)
    expect(
      arrivals()
        .filter(({ chat }) => chat === id)
        .map(({ text }) => text),
    ).toEqual(numbers(each));
  await expect.poll(pending).toBe(0);
});

test('a hint contains no copy of a large update, or of an update behind a hundred pending updates', async ({
  onTestFinished,
}) => {
  let release = (_: number) => {};
  const held = new Promise<number>((resolve) => {
    release = resolve;
  });
  const served = await servedBot(world, 1, onTestFinished, ({ text }) => (text === '0' ? held : 200));
  const copies: boolean[] = [];
  worker.onHint = (hint, pass) => {
    copies.push(hint.copy !== null);
    pass(hint);
  };
  onTestFinished(async () => worker.passHints());
  const large = 'x'.repeat(storeLimits.hint_update_bytes_max + 1);
  await served.say(0, large);
  await served.took(1);
  await expect.poll(served.pending).toBe(0);
  await expect.poll(() => copies).toEqual([false]);
  const count = storeLimits.hint_updates_max + 5;
  for (const words of numbers(count)) await served.say(0, words);
  await expect.poll(() => copies.length).toBe(1 + count);
  expect(copies.slice(1)).toEqual(numbers(count).map((n) => Number(n) < storeLimits.hint_updates_max));
  release(200);
  await served.took(1 + count);
  expect(served.texts()).toEqual([large, ...numbers(count)]);
});

test('after a webhook change, a worker sends no update from a hint to the previous receiver', async ({
  onTestFinished,
}) => {
  const { bot, say, texts } = await servedBot(world, 1, onTestFinished);
  const present = await keepBooks();
  const held: Array<{ hint: Hint; pass: () => void }> = [];
  worker.onHint = (hint, pass) => held.push({ hint, pass: () => pass(hint) });
  const open = await worker.blockSteps();
  onTestFinished(async () => {
    open();
    worker.passHints();
    await present.close();
  });
  await world.front.store.webhooks.set(bot.id, settingsFor(present), keepQueue);
  await say(0, 'after');
  // The worker gets only the hint that contains a copy of the update. It misses the earlier hint, which reports the
  // webhook change.
  await expect.poll(() => held.filter(({ hint }) => hint.copy !== null).length).toBe(1);
  for (const { hint, pass } of held) if (hint.copy !== null) pass();
  open();
  await present.tookIn(1);
  expect(texts()).toEqual([]);
});

test('if a worker misses the hint that pending updates were dropped, it still delivers every later update', async ({
  onTestFinished,
}) => {
  let answer = (_: number) => {};
  const answered = new Promise<number>((resolve) => {
    answer = resolve;
  });
  const served = await servedBot(world, 1, onTestFinished, ({ text }) => (text === 'open' ? answered : 200));
  const { bot, books, say, texts, took } = served;
  await say(0, 'open');
  await expect.poll(() => books.open).toBe(1);
  const open = await worker.blockSteps();
  onTestFinished(async () => open());
  await say(0, 'old');
  // Calls the script with the settings version of an earlier change, so that the call looks delayed. The script drops
  // the pending updates, but does not change the version of the settings.
  const { keys } = world.cluster;
  const { client } = world.front.connection;
  const hook = await client.hget(keys.queueState(bot.id), 'hook');
  const partition = keys.partitions.of(bot.id);
  const at = { ...queueKeys(keys, bot.id), consumption: keys.consumption(bot.id) };
  const late = { version: '1', set: '1', active: true, drop: `${hook}`, mask: '' };
  await world.front.runner.call('webhooks/switch', partition, at, { bot: `${bot.id}`, ...late });
  expect(await served.pending()).toBe(0);
  await say(0, 'new');
  open();
  await expect.poll(() => worker.dropped.get(bot.id)).toBeGreaterThan(0);
  answer(200);
  await took(2);
  await expect.poll(served.pending).toBe(0);
  expect(texts()).toEqual(['open', 'new']);
});

test('hints contain no copies of updates for a bot whose token was revoked', async ({ onTestFinished }) => {
  const { bot, say, texts, took } = await servedBot(world, 1, onTestFinished);
  // A worker sends a copy only if it has the bot in its cache and the bot is not blocked. The revocation removes the
  // bot from the cache.
  let copies = 0;
  worker.onHint = (hint, pass) => {
    if (hint.copy !== null) copies++;
    pass(hint);
  };
  await say(0, 'before');
  await took(1);
  await expect.poll(() => copies).toBe(1);
  const open = await worker.blockSteps();
  onTestFinished(async () => {
    open();
    worker.passHints();
  });
  await world.front.store.leaks.report([{ token: bot.token, place: 'https://a.example/' }], 'report');
  for (const words of ['after', 'later']) await say(0, words);
  await expect.poll(() => copies).toBe(3);
  await sleep(200);
  // Checks the texts while the steps are still blocked, because a step that began before the revocation may still read
  // and send updates.
  expect(texts()).toEqual(['before']);
});

test('after a revocation has blocked a bot, a worker sends none of the updates that it has already read', async ({
  onTestFinished,
}) => {
  let answerFirst = (_: number) => {};
  const answered = new Promise<number>((resolve) => {
    answerFirst = resolve;
  });
  const { bot, say, texts } = await servedBot(world, 1, onTestFinished, ({ text }) =>
    text === 'first' ? answered : 200,
  );
  let copies = 0;
  worker.onHint = (hint, pass) => {
    if (hint.copy !== null) copies++;
    pass(hint);
  };
  onTestFinished(async () => worker.passHints());
  await say(0, 'first');
  await expect.poll(texts).toEqual(['first']);
  const open = await worker.blockSteps();
  onTestFinished(async () => open());
  await say(0, 'second');
  await expect.poll(() => copies).toBe(2);
  await world.front.store.leaks.report([{ token: bot.token, place: 'https://a.example/' }], 'report');
  answerFirst(200);
  await sleep(200);
  // Steps are still blocked here, so that the worker cannot learn from a step that the bot is blocked.
  expect(texts()).toEqual(['first']);
});

test('a worker that cannot renew its lease sends no copies of updates', async ({ onTestFinished }) => {
  const own = await startWorld();
  onTestFinished(() => own.close());
  const first = await watchedWorker(own);
  const { say, texts, took } = await servedBot(own, 1, onTestFinished);
  const open = await first.blockSteps();
  onTestFinished(async () => open());
  const held: Array<() => void> = [];
  first.onHint = (hint, pass) => {
    if (hint.copy !== null) held.push(() => pass(hint));
  };
  const blockedAt = performance.now();
  await say(0, 'late');
  await expect.poll(() => held.length).toBe(1);
  await sleep(blockedAt + deliveryLimits.webhook_lease_ms / 2 + 100 - performance.now());
  for (const pass of held) pass();
  await sleep(200);
  expect(texts()).toEqual([]);
  await own.worker();
  await took(1);
  expect(texts()).toEqual(['late']);
});

longTest(
  'if a worker dies before it acknowledges an update, the update is sent again with the same id',
  async ({ onTestFinished }) => {
    const own = await startWorld();
    onTestFinished(() => own.close());
    const first = await watchedWorker(own);
    const { say, texts, arrivals, took } = await servedBot(own, 1, onTestFinished);
    await first.blockSteps(({ acked }) => acked.length > 0);
    await say(0, 'sent');
    await took(1);
    await first.kill();
    await say(0, 'next');
    await own.worker();
    await took(2);
    expect(texts()).toEqual(['sent', 'sent', 'next']);
    const [sent, again] = arrivals();
    expect(again?.headers['webhook-id']).toBe(sent?.headers['webhook-id']);
    expect(again?.body).toEqual(sent?.body);
  },
);

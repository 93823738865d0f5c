/**
 * Kills and freezes two workers that push updates, and makes receivers fail. No update is lost, and each chat stays in
 * order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type Arrival, type Books, keepBooks, refuseSome } from '../delivery/world.js';
import { nothingWrong } from '../support/ledger.js';
import { createRole, type RoleProcess } from '../support/role_process.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { amount, atMost, long, nothingLost, patienceMs, report } from './report.js';
import { createWorld, eventually, type World } from './world.js';

const updatesOfChat = amount(20, 1_000);
/** The number of people per bot, above the max_connections of any bot. */
const peopleCount = 120;

let service: Service;
let workers: readonly [RoleProcess, RoleProcess];
let people: readonly TestUser[];

beforeAll(async () => {
  const extraEnv = { PARTITIONS: '16', WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' };
  service = await startService({ fronts: 2, extraEnv });
  workers = [service.deliver, createRole('deliver', async () => service.env)];
  await workers[1].start();
  people = await Promise.all(Array.from({ length: peopleCount }, () => service.newUser('person')));
});
afterAll(async () => {
  if (workers?.[1].alive) workers[1].resume();
  await workers?.[1].stop();
  await service?.stop();
});

const settings = ({ url, certificate }: Books, max_connections = 40) => ({
  ...{ url, certificate, max_connections },
});

/** The updates of each bot are pushed to a separate receiver, which answers after some milliseconds. */
async function pushTo(world: World, answerMs: number) {
  const now = performance.now();
  const quiet = new Map(world.bots.map(({ id }) => [id, { last: now, longest: 0 }]));
  const books = new Map<number, Books>();
  let held = Promise.resolve();
  for (const { id } of world.bots)
    books.set(
      id,
      await keepBooks(async ({ body }: Arrival) => {
        world.hear(id, JSON.parse(body.toString()));
        const now = performance.now();
        const { last, longest } = quiet.get(id) as { last: number; longest: number };
        quiet.set(id, { last: now, longest: Math.max(longest, now - last) });
        await sleep(answerMs);
        await held;
        return 200;
      }),
    );
  await world.push(({ id }) => settings(books.get(id) as Books));
  return {
    /** For each bot, takes the longest time without a delivery. Returns the longest of these times in ms. */
    longestQuiet: () => Math.round(Math.max(...[...quiet.values()].map(({ longest }) => longest))),
    allSince: (time: number) => [...quiet.values()].every(({ last }) => last > time),
    open: () => [...books.values()].map(({ open }) => open),
    /** Makes the receivers delay their answers until the returned function is called. */
    hold(): () => void {
      let release = () => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    close: () => Promise.all([...books.values()].map((each) => each.close())),
  };
}

/** The maximum time in ms for the delivery of updates that were sent while no worker was running. */
const settleMs = amount(60_000, 600_000);

/**
 * The maximum number of deliveries that a killed worker has not recorded. There are three bots with four chats each.
 * Each chat has at most one open delivery and one answered delivery.
 */
const sentUnrecorded = 3 * 4 * 2;

test(
  'R1, R3: killing each worker in turn under load loses no update and keeps the order',
  async ({ onTestFinished }) => {
    const world = await createWorld(service);
    const { longestQuiet, allSince, open, hold, close } = await pushTo(world, 40);
    onTestFinished(() => void close());
    const ended = new AbortController();
    const loading = world.load({
      ...{ count: Number.POSITIVE_INFINITY, restMs: 200, signal: ended.signal },
      front: (lane, tries) => (lane + tries) % 2,
    });
    await sleep(amount(0, 5_000));
    const quietBeforeMs = longestQuiet();
    const kills = amount(2, 20);
    for (let n = 0; n < kills; n++) {
      await sleep(1_500);
      const worker = workers[n % 2] as RoleProcess;
      // The first killed worker may have served no bot, because the second worker had all bots.
      const release = hold();
      await eventually('requests are open', () =>
        n === 0 ? open().every((count) => count > 0) : open().some((count) => count > 0),
      );
      await worker.kill();
      release();
      const killed = performance.now();
      await worker.start();
      // The long form waits until all bots get updates again. It ignores the first second after the kill, because
      // deliveries may still have been in flight. The short form does not wait, so that deliveries pause for long
      // enough.
      if (long) await eventually('all bots get updates again', () => allSince(killed + 1_000), 30_000);
    }
    await eventually('the takeover caused a pause in deliveries', () => longestQuiet() > 1_000, 10_000);
    const { acknowledged } = world.ledger;
    await eventually('many calls were acknowledged', () => acknowledged.length > 300, 60_000);
    ended.abort();
    await loading;
    const verdict = await world.settled(settleMs);
    report('R1, R3', 'workers killed in turn under load', { kills, quietBeforeMs, ...verdict }, [
      nothingLost(verdict),
      atMost('delivered again', verdict.redelivered, kills * sentUnrecorded),
      atMost("longest time until a bot's deliveries resume, ms", longestQuiet(), 10_000),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(verdict.redelivered).toBeGreaterThan(0);
    expect(verdict.redelivered).toBeLessThanOrEqual(kills * sentUnrecorded);
    // The short form allows a longer pause. There, the second worker may be killed before it has delivered anything for
    // a bot that it has taken over.
    expect(longestQuiet()).toBeLessThan(long ? 10_000 : 20_000);
  },
  patienceMs,
);

test(
  'R2: if a worker freezes for longer than its lease, it changes nothing when it resumes',
  async ({ onTestFinished }) => {
    const [first, second] = workers;
    await second.stop();
    const world = await createWorld(service);
    const { longestQuiet, close } = await pushTo(world, 20);
    onTestFinished(() => void close());
    const ended = new AbortController();
    const loading = world.load({
      ...{ count: Number.POSITIVE_INFINITY, restMs: 200, signal: ended.signal },
      front: (lane, tries) => (lane + tries) % 2,
    });
    await world.warmedUp();
    // The first worker has all bots, and keeps them when the second worker starts. When the first worker freezes, the
    // second worker takes over. After that, the second worker freezes too.
    await second.start();
    const rounds = amount(1, 6);
    for (let round = 0; round < rounds; round++) {
      const frozen = round % 2 === 0 ? first : second;
      frozen.pause();
      await sleep(long ? 5_000 + 5_000 * round : limits.webhook_lease_ms + 2_500);
      frozen.resume();
      await sleep(1_500);
    }
    ended.abort();
    await loading;
    const verdict = await world.settled(settleMs);
    report('R2', 'workers frozen in turn under load', { rounds, ...verdict }, [
      nothingLost(verdict),
      atMost('delivered again', verdict.redelivered, rounds * sentUnrecorded),
      atMost("longest time until a bot's deliveries resume, ms", longestQuiet(), 10_000),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(verdict.redelivered).toBeLessThanOrEqual(rounds * sentUnrecorded);
    expect(longestQuiet()).toBeGreaterThan(1_000);
    expect(longestQuiet()).toBeLessThan(10_000);
  },
  patienceMs,
);

async function startedBy(users: readonly TestUser[]): Promise<TestBot> {
  const bot = await service.newBot(users[0] as TestUser, 'busy');
  await Promise.all(users.map((user) => service.openChat(user, bot)));
  return bot;
}

const say = (user: TestUser, bot: TestBot, text: string, front = 0) =>
  resultOf(service.app(user, 'POST', `/api/chats/${bot.id}/messages`, { text }, front));

/**
 * A receiver that can hold back all its answers. While it holds them back, it counts the requests that are open at the
 * same time.
 */
async function countingReceiver() {
  let held = Promise.resolve();
  const books = await keepBooks(() => held.then(() => 200));
  async function mostOpen(): Promise<number> {
    let release = () => {};
    held = new Promise((resolve) => {
      release = resolve;
    });
    books.mostOpen = books.open;
    for (let before = -1; before < books.mostOpen; await sleep(600)) before = books.mostOpen;
    release();
    return books.mostOpen;
  }
  return { books, mostOpen };
}

const max_connections_tried = [1, 40, 100, 40, 1, 100];

async function floodedWithLimits(onTestFinished: (end: () => Promise<void>) => void): Promise<void> {
  const bot = await startedBy(people);
  const { books, mostOpen } = await countingReceiver();
  onTestFinished(() => books.close());
  const seen: Record<string, number> = {};
  const setTo = (max: number) => resultOf(service.bot(bot, 'setWebhook', settings(books, max)));
  let saying = true;
  const flood = async () => {
    for (let n = 0; saying; n++) {
      await Promise.all(people.map((user, i) => say(user, bot, `${n}`, i % 2)));
      // Keeps enough updates pending, but no more than the workers can push before the end of the test.
      while (saying && n * peopleCount - books.taken.length > 4 * peopleCount) await sleep(20);
    }
  };
  let flooding: Promise<void> | undefined;
  for (const [i, max] of max_connections_tried.entries()) {
    const last = max_connections_tried[i - 1] ?? max;
    books.mostOpen = 0;
    await setTo(max);
    flooding ??= flood();
    // A worker reads a changed max_connections when it renews its lease. Requests that are already open may end first.
    await sleep(limits.webhook_renew_ms + 500);
    expect(books.mostOpen, `when max_connections changed from ${last} to ${max}`).toBeLessThanOrEqual(
      Math.max(last, max),
    );
    // On a busy machine, a worker may read the changed limit later.
    await eventually(
      `${max} requests are open`,
      async () => {
        seen[`${i}: ${max}`] = await mostOpen();
        return seen[`${i}: ${max}`] === max;
      },
      60_000,
    );
    expect(await mostOpen()).toBeLessThanOrEqual(max);
  }
  saying = false;
  await flooding;
  report('', 'max_connections by two workers, changed under load', seen);
}

test(
  'two workers together never exceed max_connections, even if this limit changes',
  ({ onTestFinished }) => floodedWithLimits(onTestFinished),
  patienceMs,
);

test(
  `${updatesOfChat} updates in each of 50 chats arrive in order, though one in ten attempts fails`,
  async ({ onTestFinished }) => {
    const users = people.slice(0, 50);
    const bot = await startedBy(users);
    const books = await keepBooks(refuseSome());
    onTestFinished(() => books.close());
    await resultOf(service.bot(bot, 'setWebhook', { ...settings(books), drop_pending_updates: true }));
    const texts = Array.from({ length: updatesOfChat }, (_, n) => `${n}`);
    const before = performance.now();
    await Promise.all(
      users.map(async (user, i) => {
        for (const text of texts) await say(user, bot, text, i % 2);
      }),
    );
    await books.tookIn(users.length * updatesOfChat, 60_000 + 40 * updatesOfChat);
    const tookMs = Math.round(performance.now() - before);
    await sleep(1_000);
    const ofUser = (arrivals: readonly Arrival[], { id }: TestUser) =>
      arrivals.filter(({ chat, text }) => chat === id && text !== '/start').map(({ text }) => text);
    for (const user of users) {
      expect(ofUser(books.taken, user)).toEqual(texts);
      // An update is tried only after the earlier updates of its chat were accepted.
      expect([...new Set(ofUser(books.arrivals, user))]).toEqual(texts);
      const tried = ofUser(books.arrivals, user);
      expect(tried).toEqual([...tried].sort((a, b) => Number(a) - Number(b)));
    }
    const failed = books.arrivals.length - books.taken.length;
    report('', 'in order within each of 50 chats, one attempt in ten failed', {
      ...{ updates: books.taken.length, failed, tookMs },
    });
    expect(failed).toBeGreaterThan(users.length * updatesOfChat * 0.05);
  },
  patienceMs,
);

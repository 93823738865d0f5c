import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deliveryLimits } from '../../src/delivery/limits.js';
import { isDelivered } from '../../src/delivery/outcome.js';
import { createReplayer } from '../../src/delivery/replayer.js';
import { UpdateKeeper } from '../../src/delivery/update_keeper.js';
import { ruleLimits } from '../../src/rules/limits.js';
import { botOf, queueId } from '../../src/store/core/queue_ids.js';
import type { RouteAsk } from '../../src/store/core/route_record.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import type { Delivery } from '../../src/store/webhooks/deliveries.js';
import type { KeptUpdate } from '../../src/store/webhooks/kept_updates.js';
import { makeUser, type TestNode } from '../support/store.js';
import {
  type Answer,
  type Books,
  keepBooks,
  keepQueue,
  makeChats,
  settingsFor,
  startWorld,
  type World,
} from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

type Finishing = (end: () => Promise<void>) => void;

async function books(onTestFinished: Finishing, answer?: Answer): Promise<Books> {
  const kept = await keepBooks(answer);
  onTestFinished(() => kept.close());
  return kept;
}

const replayerOf = ({ store, errors }: TestNode) =>
  createReplayer({
    store,
    time: store.time,
    onError: (error) => {
      errors.push(error);
    },
  });

/** Starts a worker and a replayer, as the role `deliver` does. */
async function startDeliver(onTestFinished: Finishing) {
  const made = await world.worker();
  const replayer = replayerOf(made.node);
  replayer.start();
  onTestFinished(async () => {
    await replayer.stop();
    await made.worker.stop();
  });
}

const routeTo = (to: Books, name: string, more: Partial<RouteAsk> = {}): RouteAsk => ({
  ...{ ...settingsFor(to), retry: null, name, mask: null, chats: null, percent: 100 },
  ...{ position: null, drop: false, ...more },
});
/** The commands of a route that gets no live updates, because no message of these tests is such a command. */
const none = { names: ['none'], username: 'nobody_bot' };
const routes = () => world.front.store.webhooks;
const replays = () => world.front.store.historyReplays;
const everything = { from: 0, fromTime: null };
const latest = async (bot: number) => (await replays().list(bot))[0];
const isReplay = ({ headers }: { headers: Record<string, unknown> }) =>
  headers['x-service-replay'] !== undefined;

test('a replay delivers signed updates to a chosen route in the order of each chat, and marks them as replays', async ({
  onTestFinished,
}) => {
  await startDeliver(onTestFinished);
  const later = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 3);
  for (let n = 0; n < 20; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  await routes().setRoute(bot.id, routeTo(later, 'later', { commands: none, secretToken: 'quiet' }));
  const { id } = await replays().start(bot.id, { slot: 1, ...everything });
  await later.tookIn(60);
  await expect
    .poll(() => latest(bot.id))
    .toMatchObject({
      id,
      route: 'later',
      fed: 60,
      pending: 0,
      dead: 0,
      cancelled: false,
      ended: expect.any(Number),
    });
  for (const { id: user } of users)
    expect(later.taken.filter(({ chat }) => chat === user).map(({ text }) => text)).toEqual(
      Array.from({ length: 20 }, (_, n) => `${n}`),
    );
  for (const { headers, body, updateId } of later.taken) {
    expect(headers['x-service-replay']).toBe(String(id));
    expect(headers['webhook-id']).toBe(`${bot.id}-${updateId}`);
    expect(headers['x-service-signature']).toBe(createHmac('sha256', 'quiet').update(body).digest('hex'));
    expect(headers['webhook-signature']).toMatch(/^v1,/);
  }
  // The updates are still in the bot’s queue for polls.
  expect((await world.front.store.queues.info(bot.id)).pending).toBe(60);
  expect(world.front.errors).toEqual([]);
});

test('a replay from an update id begins with this update, and leaves out kinds of updates that the route does not accept', async ({
  onTestFinished,
}) => {
  await startDeliver(onTestFinished);
  const [early, edits] = [await books(onTestFinished), await books(onTestFinished)];
  const { bot, say } = await makeChats(world.front, 1);
  for (let n = 0; n < 5; n++) await say(0, `${n}`);
  await routes().setRoute(bot.id, routeTo(early, 'early', { commands: none }));
  await replays().start(bot.id, { slot: 1, ...everything });
  await early.tookIn(5);
  await expect.poll(async () => (await latest(bot.id))?.ended).not.toBeNull();
  const third = early.taken[2]?.updateId as number;
  await replays().start(bot.id, { slot: 1, from: third, fromTime: null });
  await expect.poll(async () => (await latest(bot.id))?.fed).toBe(3);
  await expect.poll(() => early.taken.slice(5).map(({ text }) => text)).toEqual(['2', '3', '4']);
  await routes().setRoute(bot.id, routeTo(edits, 'edits', { commands: none, mask: 2 }));
  await expect.poll(async () => (await latest(bot.id))?.ended).not.toBeNull();
  await replays().start(bot.id, { slot: 2, ...everything });
  await expect.poll(() => latest(bot.id)).toMatchObject({ slot: 2, fed: 0, ended: expect.any(Number) });
  // The replay begins at a time in the future, so it has no updates to send.
  const fromTime = Math.ceil(Date.now() / 1_000) + 60;
  await replays().start(bot.id, { slot: 1, from: 0, fromTime });
  await expect.poll(() => latest(bot.id)).toMatchObject({ fromTime, fed: 0, ended: expect.any(Number) });
  expect(edits.arrivals).toEqual([]);
});

test('live updates do not wait for a replay whose deliveries fail, not even in the same chat', async ({
  onTestFinished,
}) => {
  await startDeliver(onTestFinished);
  let refused = true;
  const main = await books(onTestFinished, (arrival) => (isReplay(arrival) && refused ? 503 : 200));
  const broken = await books(onTestFinished, () => 500);
  const { bot, say } = await makeChats(world.front, 1);
  const retry = { first_delay: 3_600, factor: 1, max_age: 86_400 };
  await routes().setRoute(bot.id, routeTo(broken, 'broken', { retry }));
  for (let n = 0; n < 60; n++) await say(0, `old ${n}`);
  await routes().set(
    bot.id,
    settingsFor(main, { retry: { first_delay: 1, factor: 1, max_age: 86_400 } }),
    keepQueue,
  );
  await routes().setRoute(bot.id, routeTo(broken, 'broken', { retry, commands: none }));
  await replays().start(bot.id, { slot: 0, ...everything });
  await expect.poll(() => main.arrivals.filter(isReplay).length).toBeGreaterThan(0);
  for (let n = 0; n < 10; n++) await say(0, `new ${n}`);
  await expect
    .poll(() => main.taken.map(({ text }) => text))
    .toEqual(Array.from({ length: 10 }, (_, n) => `new ${n}`));
  await expect
    .poll(() => latest(bot.id))
    .toMatchObject({
      pending: limits.replay_pending_max,
      error: expect.stringContaining('503'),
      ended: null,
    });
  expect((await world.front.store.queues.info(bot.id)).error).toBeNull();
  refused = false;
  await main.tookIn(70);
  expect(main.taken.filter(isReplay).map(({ text }) => text)).toEqual(
    Array.from({ length: 60 }, (_, n) => `old ${n}`),
  );
  await expect.poll(() => latest(bot.id)).toMatchObject({ fed: 60, pending: 0, ended: expect.any(Number) });
});

test('a replay continues after its worker is killed', async ({ onTestFinished }) => {
  const later = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 4);
  for (let n = 0; n < 30; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  await routes().setRoute(bot.id, routeTo(later, 'later', { commands: none }));
  const doomed = await world.worker();
  replayerOf(doomed.node).start();
  await replays().start(bot.id, { slot: 1, ...everything });
  await later.tookIn(20);
  await doomed.kill();
  expect(await latest(bot.id)).toMatchObject({ ended: null });
  await startDeliver(onTestFinished);
  await later.tookIn(120);
  await expect.poll(() => latest(bot.id)).toMatchObject({ fed: 120, pending: 0, ended: expect.any(Number) });
  expect(new Set(later.taken.map(({ updateId }) => updateId)).size).toBe(120);
});

test('a cancelled replay delivers no more updates, and a bot has at most one replay at a time', async ({
  onTestFinished,
}) => {
  let refused = true;
  const later = await books(onTestFinished, () => (refused ? 500 : 200));
  const { bot, say } = await makeChats(world.front, 1);
  for (let n = 0; n < 40; n++) await say(0, `${n}`);
  await routes().setRoute(
    bot.id,
    routeTo(later, 'later', { commands: none, retry: { first_delay: 1, factor: 1, max_age: 60 } }),
  );
  await startDeliver(onTestFinished);
  const { id } = await replays().start(bot.id, { slot: 1, ...everything });
  await expect(replays().start(bot.id, { slot: 0, ...everything })).rejects.toThrow(
    'a replay of this bot is running',
  );
  await expect.poll(() => later.arrivals.length).toBeGreaterThan(0);
  expect(await replays().cancel(bot.id, id)).toMatchObject({
    cancelled: true,
    ended: expect.any(Number),
    pending: 0,
  });
  expect(await replays().cancel(bot.id, id)).toMatchObject({ id, cancelled: true });
  await expect(replays().cancel(bot.id, id + 1_000)).rejects.toThrow('replay not found');
  refused = false;
  // The bot’s next replay starts at the beginning, and delivers each update once.
  await replays().start(bot.id, { slot: 1, ...everything });
  await later.tookIn(40);
  expect(later.taken.length).toBe(40);
});

test('a transfer of the bot ends its replay, and the new owner can start another replay', async ({
  onTestFinished,
}) => {
  const later = await books(onTestFinished, () => 500);
  const { bot, users, say } = await makeChats(world.front, 1);
  await say(0, 'Hello');
  await routes().setRoute(bot.id, routeTo(later, 'later', { commands: none }));
  await startDeliver(onTestFinished);
  await replays().start(bot.id, { slot: 1, ...everything });
  await expect.poll(() => later.arrivals.length).toBeGreaterThan(0);
  const heir = await makeUser(world.front);
  const username = (await world.front.store.users.find(heir.id))?.username ?? '';
  await world.front.store.bots.transfer(users[0]?.id ?? 0, bot.id, username);
  expect(await replays().list(bot.id)).toEqual([]);
  const started = () => replays().start(bot.id, { slot: 1, ...everything });
  await expect.poll(() => started().catch(({ kind }) => kind)).toMatchObject({ fed: 0, ended: null });
  expect(await replays().list(bot.id)).toHaveLength(1);
});

test('a suspension of the bot stops its replay before the call returns', async ({ onTestFinished }) => {
  const later = await books(onTestFinished, () => 500);
  const { bot, say } = await makeChats(world.front, 1);
  for (let n = 0; n < 5; n++) await say(0, `${n}`);
  await routes().setRoute(bot.id, routeTo(later, 'later', { commands: none }));
  await startDeliver(onTestFinished);
  await replays().start(bot.id, { slot: 1, ...everything });
  await expect.poll(() => later.arrivals.length).toBeGreaterThan(0);
  await world.front.store.oversight.suspendBot(bot.id, true);
  const state = world.cluster.keys.queueState(queueId(bot.id, ruleLimits.replay_slot));
  expect(await world.front.connection.client.hget(state, 'hook')).toBeNull();
  await expect.poll(() => latest(bot.id)).toMatchObject({ cancelled: true, ended: expect.any(Number) });
  await replays().start(bot.id, { slot: 1, ...everything });
  await expect.poll(() => latest(bot.id)).toMatchObject({ fed: 0, cancelled: true });
});

test('a replay ends when its route is deleted', async ({ onTestFinished }) => {
  const later = await books(onTestFinished, () => 500);
  const { bot, say } = await makeChats(world.front, 1);
  await say(0, 'kept');
  await routes().setRoute(bot.id, routeTo(later, 'later', { commands: none }));
  await startDeliver(onTestFinished);
  await replays().start(bot.id, { slot: 1, ...everything });
  await expect.poll(() => later.arrivals.length).toBeGreaterThan(0);
  await routes().removeRoute(bot.id, 'later', false);
  await expect.poll(() => latest(bot.id)).toMatchObject({ cancelled: true, ended: expect.any(Number) });
});

test('kept updates are replayed without being kept a second time, and are deleted with their person or bot', async ({
  onTestFinished,
}) => {
  const { node, worker } = await world.worker({
    onOutcome: (queue, delivery, outcome, _, { owner, isReplay }) => {
      if (outcome !== null && isDelivered(outcome) && !isReplay) keeper.note(owner, queue, delivery);
    },
  });
  const { store, errors } = node;
  const keeper = new UpdateKeeper({
    ...{ append: store.keptUpdates.append, time: store.time },
    onError: (error) => errors.push(error),
  });
  const replayer = replayerOf(node);
  replayer.start();
  onTestFinished(async () => {
    await replayer.stop();
    await worker.stop();
  });
  const [main, later] = [await books(onTestFinished), await books(onTestFinished)];
  const { bot, users, say } = await makeChats(world.front, 2);
  await routes().set(bot.id, settingsFor(main), keepQueue);
  for (let n = 0; n < 70; n++) await Promise.all([0, 1].map((person) => say(person, `${n}`)));
  await main.tookIn(140);
  const kept = (user: number | null = null) =>
    world.front.written.value<number>`
      select count(*) as count from kept_updates
      where bot_id = ${bot.id} and (${user}::bigint is null or user_id = ${user})`;
  await expect.poll(() => kept()).toBe(140);
  await routes().setRoute(bot.id, routeTo(later, 'later', { commands: none }));
  await replays().start(bot.id, { slot: 1, ...everything });
  await later.tookIn(140);
  await expect.poll(() => latest(bot.id)).toMatchObject({ fed: 140, ended: expect.any(Number) });
  await keeper.stop();
  expect([await kept(), keeper.unkept()]).toEqual([140, 0]);
  const [owner, other] = users.map(({ id }) => id) as [number, number];
  const { accounts } = world.front.store;
  await accounts.end(other);
  // The last step of the account removal waits until all earlier changes are in Postgres.
  await expect
    .poll(async () => {
      await world.cluster.flush();
      await accounts.continueRemoval();
      return kept(other);
    })
    .toBe(0);
  expect(await kept()).toBe(70);
  await world.front.store.bots.remove(owner, bot.id);
  await expect.poll(() => kept()).toBe(0);
});

test('the deletion of a bot does not wait until all kept updates are deleted', async ({ onTestFinished }) => {
  const { bot, users } = await makeChats(world.front, 1);
  const { db, store } = world.front;
  await db.query(
    `insert into kept_updates (bot_id, update_id, at, user_id, record)
     select $1, n, now(), 0, '' from generate_series(1, 5000) n`,
    [bot.id],
  );
  const kept = () => db.value<number>`select count(*) as count from kept_updates where bot_id = ${bot.id}`;
  await store.bots.remove(users[0]?.id ?? 0, bot.id);
  expect(await kept()).toBe(5_000 - limits.kept_pieces_deleted_at_once * 1_000);
  store.sweep.start();
  onTestFinished(() => store.sweep.stop());
  await expect.poll(kept).toBe(0);
});

test('while Postgres is unavailable, updates for later replays are buffered, and one owner gets at most half of the buffer', async () => {
  const { bot, users, say } = await makeChats(world.front, 1);
  await say(0, 'one');
  const to = await keepBooks();
  const delivered: Delivery[] = [];
  const owners: number[] = [];
  const { worker } = await world.worker({
    onOutcome: (queue, delivery, _outcome, _dead, { owner }) => {
      // Leaves out bots of earlier tests, because they may still have pending updates.
      if (botOf(queue) !== bot.id) return;
      delivered.push(delivery);
      owners.push(owner);
    },
  });
  await routes().set(bot.id, settingsFor(to), keepQueue);
  await to.tookIn(1);
  await worker.stop();
  await to.close();
  const owner = users[0]?.id as number;
  expect(owners).toEqual([owner]);
  let away = true;
  const stored: KeptUpdate[] = [];
  const keeper = new UpdateKeeper({
    time: world.front.store.time,
    append: async (updates) => {
      if (away) throw new Error('away');
      stored.push(...updates);
    },
    onError: () => undefined,
  });
  const update = delivered[0] as Delivery;
  const half = deliveryLimits.delivery_attempts_waiting_max / 2;
  for (let n = 0; n < half + 3; n++) keeper.note(owner, bot.id, update);
  keeper.note(owner, bot.id, { ...update, bytes: deliveryLimits.delivery_record_kept_bytes_max + 1 });
  keeper.note(owner, bot.id, { ...update, entry: { ...update.entry, kind: 'inline_query' } });
  expect([keeper.waiting(), keeper.unkept()]).toEqual([half, 4]);
  const other = { owner: owner + 1, bot: bot.id + 1 };
  keeper.note(other.owner, other.bot, update);
  expect([keeper.waiting(), keeper.unkept()]).toEqual([half + 1, 4]);
  away = false;
  await keeper.stop();
  expect(keeper.waiting()).toBe(0);
  expect(stored.length).toBe(half + 1);
  expect(stored[0]).toMatchObject({
    bot: bot.id,
    updateId: update.entry.shownId,
    user: update.entry.from.id,
  });
  expect(stored[half]?.bot).toBe(other.bot);
});

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.js';
import { queueId } from '../../src/store/core/queue_ids.js';
import type { RouteAsk } from '../../src/store/core/route_record.js';
import { storeLimits } from '../../src/store/limits.js';
import { allDead } from '../../src/store/webhooks/replays.js';
import { systemTime } from '../../src/time.js';
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

/** Starts a worker that stops at the end of the test, so that each test knows which workers are running. */
async function startWorker(onTestFinished: Finishing): Promise<void> {
  const { worker } = await world.worker();
  onTestFinished(() => worker.stop());
}

const routeTo = (to: Books, name: string, more: Partial<RouteAsk> = {}): RouteAsk => ({
  ...{ ...settingsFor(to), retry: null, name, mask: null, chats: null, percent: 100 },
  ...{ position: null, drop: false, ...more },
});
const chatOf = (bot: number, user: number) => `${bot}.${user}`;
const textsAt = ({ taken }: Books, user: number) =>
  taken.filter(({ chat }) => chat === user).map(({ text }) => text);
const routes = () => world.front.store.webhooks;
const pending = async (bot: number, slot: number) =>
  (await world.front.store.queues.info(queueId(bot, slot))).pending;

test('each update goes to the first route that matches the update, and the updates of a chat stay in order', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  const [main, listed, canary] = await Promise.all([1, 2, 3].map(() => books(onTestFinished)));
  const { bot, users, say } = await makeChats(world.front, 30);
  await routes().set(bot.id, settingsFor(main as Books), keepQueue);
  const first = users[0]?.id as number;
  await routes().setRoute(
    bot.id,
    routeTo(listed as Books, 'listed', { chats: [chatOf(bot.id, first)], secretToken: 'listed-secret' }),
  );
  await routes().setRoute(bot.id, routeTo(canary as Books, 'canary', { percent: 40 }));
  for (let n = 0; n < 3; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  await expect
    .poll(() => [main, listed, canary].reduce((sum, each) => sum + (each as Books).taken.length, 0))
    .toBe(90);
  expect(textsAt(listed as Books, first)).toEqual(['0', '1', '2']);
  expect(listed?.taken.length).toBe(3);
  expect(listed?.taken[0]?.headers['x-service-bot-api-secret-token']).toBe('listed-secret');
  const inCanary = users.filter(({ id }) => textsAt(canary as Books, id).length > 0);
  // Each chat goes to the route `canary` at random. The canary gets fewer than two chats in only one of 100,000 test
  // runs.
  expect(inCanary.length).toBeGreaterThan(1);
  expect(inCanary.length).toBeLessThan(28);
  for (const { id } of users.slice(1)) {
    const [one, two] = [textsAt(canary as Books, id), textsAt(main as Books, id)];
    expect([...one, ...two]).toEqual(['0', '1', '2']);
    expect(one.length === 0 || two.length === 0).toBe(true);
  }
  const ids = [main, listed, canary].flatMap((each) =>
    (each as Books).taken.map(({ headers }) => headers['webhook-id']),
  );
  expect(new Set(ids).size).toBe(90);
  expect(ids[0]).toMatch(new RegExp(`^${bot.id}-\\d+$`));
});

test('a route with a failing receiver does not delay other routes, and later delivers its updates in order', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  let dead = true;
  const broken = await books(onTestFinished, () => (dead ? 500 : 200));
  const main = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 4);
  const [first, second] = users.map(({ id }) => id) as [number, number];
  await routes().set(bot.id, settingsFor(main), keepQueue);
  await routes().setRoute(
    bot.id,
    routeTo(broken, 'broken', {
      chats: [chatOf(bot.id, first), chatOf(bot.id, second)].sort(),
      retry: { first_delay: 1, factor: 1, max_age: 3_600 },
    }),
  );
  for (let n = 0; n < 5; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  await main.tookIn(10);
  await expect.poll(() => pending(bot.id, 1)).toBe(10);
  expect(await pending(bot.id, 0)).toBeLessThanOrEqual(10);
  const state = (await routes().routeStates(bot.id))[0];
  await expect
    .poll(async () => (await routes().routeStates(bot.id))[0]?.info.error?.message)
    .toBe('Wrong response from the webhook: 500 Internal Server Error');
  expect(state?.name).toBe('broken');
  expect((await world.front.store.queues.info(bot.id)).error).toBeNull();
  dead = false;
  await broken.tookIn(10);
  for (const id of [first, second]) expect(textsAt(broken, id)).toEqual(['0', '1', '2', '3', '4']);
});

test('after the URL of a route changes, only the new receiver gets updates, including updates that were already pending', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  const former = await books(onTestFinished, () => 500);
  const next = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 3);
  await routes().setRoute(bot.id, routeTo(former, 'all'));
  await Promise.all(users.map((_, person) => say(person, 'early')));
  await expect.poll(() => former.arrivals.length).toBeGreaterThan(2);
  await routes().setRoute(bot.id, routeTo(next, 'all'));
  await next.tookIn(3);
  const before = former.arrivals.length;
  await Promise.all(users.map((_, person) => say(person, 'late')));
  await next.tookIn(6);
  expect(former.arrivals.length).toBe(before);
  for (const { id } of users) expect(textsAt(next, id)).toEqual(['early', 'late']);
});

test('the webhook gets the pending updates of a deleted route before newer updates of their chats', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  const broken = await books(onTestFinished, () => 500);
  const main = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 3);
  await routes().set(bot.id, settingsFor(main), keepQueue);
  await routes().setRoute(bot.id, routeTo(broken, 'broken'));
  for (let n = 0; n < 4; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  await expect.poll(() => broken.arrivals.length).toBeGreaterThan(2);
  const removing = routes().removeRoute(bot.id, 'broken', false);
  for (let n = 4; n < 8; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  expect(await removing).toBe(true);
  await main.tookIn(24);
  const before = broken.arrivals.length;
  for (const { id } of users) expect(textsAt(main, id)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);
  await say(0, 'last');
  await main.tookIn(25);
  expect(broken.arrivals.length).toBe(before);
  expect(await routes().removeRoute(bot.id, 'broken', false)).toBe(false);
});

test('polls return the updates that match no route', async ({ onTestFinished }) => {
  await startWorker(onTestFinished);
  const taking = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 2);
  await routes().setRoute(
    bot.id,
    routeTo(taking, 'one', { chats: [chatOf(bot.id, users[0]?.id as number)] }),
  );
  await say(0, 'routed');
  await say(1, 'polled');
  await taking.tookIn(1);
  expect(await pending(bot.id, 0)).toBe(1);
  expect(taking.taken.map(({ text }) => text)).toEqual(['routed']);
});

test('after a worker is killed, another worker delivers the updates of the killed worker, in order on each route', async ({
  onTestFinished,
}) => {
  const killed = await world.worker();
  let slow = true;
  const answer = () => (slow ? sleep(60_000, 200, { ref: false }) : 200);
  const [one, two] = [await books(onTestFinished, answer), await books(onTestFinished, answer)];
  const { bot, users, say } = await makeChats(world.front, 6);
  await routes().set(bot.id, settingsFor(one), keepQueue);
  await routes().setRoute(bot.id, routeTo(two, 'half', { percent: 50, maxConnections: 2 }));
  for (let n = 0; n < 3; n++) await Promise.all(users.map((_, person) => say(person, `${n}`)));
  await expect.poll(() => one.open + two.open).toBeGreaterThan(2);
  await killed.kill();
  // The receivers have not answered any request of the killed worker. An update that they had accepted would now arrive
  // a second time.
  slow = false;
  await startWorker(onTestFinished);
  await expect
    .poll(() => new Set([...one.taken, ...two.taken].map(({ updateId }) => updateId)).size)
    .toBe(18);
  for (const { id } of users) expect([...textsAt(one, id), ...textsAt(two, id)]).toEqual(['0', '1', '2']);
});

test('after Redis loses all data, updates still go to their routes', async ({ onTestFinished }) => {
  await startWorker(onTestFinished);
  const taking = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 2);
  await routes().setRoute(
    bot.id,
    routeTo(taking, 'one', { chats: [chatOf(bot.id, users[0]?.id as number)] }),
  );
  const { client } = world.front.connection;
  const { keys } = world.cluster;
  for (const queue of [bot.id, queueId(bot.id, 1)])
    await client.del(keys.queueState(queue), keys.queue(queue));
  await client.del(keys.routes(bot.id), keys.webhook(bot.id));
  await say(0, 'routed');
  await say(1, 'polled');
  await taking.tookIn(1);
  expect(await pending(bot.id, 0)).toBe(1);
});

test('a deleted bot loses its routes', async ({ onTestFinished }) => {
  await startWorker(onTestFinished);
  const taking = await books(onTestFinished, () => 500);
  const { bot, users, say } = await makeChats(world.front, 1);
  await routes().setRoute(bot.id, routeTo(taking, 'one'));
  await say(0, 'routed');
  await expect.poll(() => taking.arrivals.length).toBeGreaterThan(0);
  await world.front.store.bots.remove(users[0]?.id as number, bot.id);
  expect(await routes().routes(bot.id)).toEqual([]);
  expect(await pending(bot.id, 1)).toBe(0);
});

/** Backdates the pending updates of a queue, so that they exceed the age limit of deliveries. */
async function dayPasses(queue: number): Promise<void> {
  const { client } = world.front.connection;
  const key = world.cluster.keys.queue(queue);
  const rows = await client.xrangeBuffer(key, '-', '+');
  await client.del(key);
  for (const [id, fields] of rows) {
    fields[3] = Buffer.from(`${Date.now() - 25 * 3_600_000}`);
    await client.xadd(key, id, ...fields);
  }
}

/** Deletes the Redis keys of a bot that has one route. */
async function forget(bot: number): Promise<void> {
  const { client } = world.front.connection;
  const { keys } = world.cluster;
  for (const queue of [bot, queueId(bot, 1)]) await client.del(keys.queueState(queue), keys.queue(queue));
  await client.del(keys.routes(bot), keys.webhook(bot));
}

test('after Redis loses all data, an earlier request to drop updates does not drop newer updates', async ({
  onTestFinished,
}) => {
  const taking = await books(onTestFinished);
  const { bot, say } = await makeChats(world.front, 1);
  await routes().setRoute(bot.id, routeTo(taking, 'all'));
  await routes().setRoute(bot.id, routeTo(taking, 'all', { drop: true }));
  await forget(bot.id);
  await say(0, 'kept');
  await routes().setRoute(bot.id, routeTo(taking, 'other'));
  expect(await pending(bot.id, 1)).toBe(1);
  await startWorker(onTestFinished);
  await taking.tookIn(1);
});

test('after a bot is deleted, its current and deleted routes have no updates, retries or due times left', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  const broken = await books(onTestFinished, () => 500);
  const { bot, users, say } = await makeChats(world.front, 2);
  const [first] = users.map(({ id }) => id) as [number];
  await routes().setRoute(bot.id, routeTo(broken, 'one', { chats: [chatOf(bot.id, first)] }));
  await routes().setRoute(bot.id, routeTo(broken, 'two'));
  await Promise.all([say(0, 'a'), say(1, 'b')]);
  const { client } = world.front.connection;
  const { keys } = world.cluster;
  const parked = (slot: number) => client.exists(keys.parked(queueId(bot.id, slot)));
  await expect.poll(async () => (await parked(1)) + (await parked(2))).toBe(2);
  // Simulates a node that dies after it has deleted a route and before it has moved the updates of the route.
  const { hooks } = world.front;
  const { call } = hooks;
  hooks.call = (name, run) => (name === 'webhooks/set_routes' ? Promise.reject(new Error('dead')) : run());
  await expect(routes().removeRoute(bot.id, 'two', false)).rejects.toThrow('dead');
  hooks.call = call;
  await world.front.store.bots.remove(first, bot.id);
  const left = async () => {
    const found = await client.keys('*');
    const own = found.filter((key) => new RegExp(`:0*${bot.id}$|:[12]0*${bot.id}$`).test(key));
    const kinds = own.map((key) => key.replace(/^\{[^}]*\}:|:\d+$/g, ''));
    const due = (await client.zrange(keys.webhooksDue(keys.partitions.of(bot.id)), '0', '-1')).filter((id) =>
      id.endsWith(String(bot.id)),
    );
    const forever = await Promise.all(own.map(async (key) => ((await client.pttl(key)) === -1 ? key : null)));
    return {
      queues: kinds.filter((kind) => /^(queue|parked|retries|attempts|routes)$/.test(kind)),
      due,
      forever,
    };
  };
  await expect
    .poll(async () => {
      const { queues, due, forever } = await left();
      return [queues, due, forever.filter((key) => key?.includes('queue_state'))];
    })
    .toEqual([[], [], []]);
});

test('a deleted bot sends no further requests to the receivers of its routes', async ({ onTestFinished }) => {
  const { node, worker } = await world.worker();
  onTestFinished(() => worker.stop());
  let hinted = false;
  node.hooks.hint = (_, words) => {
    hinted ||= words === 'w';
    return true;
  };
  let noticed = false;
  node.hooks.call = async (name, run) => {
    const result = await run();
    noticed ||= name === 'webhooks/advance' && (result as { hook?: number }).hook === 0;
    return result;
  };
  let release = () => {};
  const held = new Promise<number>((resolve) => {
    release = () => resolve(200);
  });
  const slow = await books(onTestFinished, () => held);
  const { bot, users, say } = await makeChats(world.front, 6);
  await routes().setRoute(bot.id, routeTo(slow, 'all', { maxConnections: 1 }));
  await Promise.all(users.map((_, person) => say(person, 'a')));
  await expect.poll(() => slow.arrivals.length).toBe(1);
  // Waits, because a worker subscribes to a queue's hints some time after it began to serve the queue.
  const channel = world.cluster.keys.botChannel(queueId(bot.id, 1));
  const subscribers = async () =>
    Number(((await world.front.connection.client.call('PUBSUB', 'SHARDNUMSUB', channel)) as unknown[])[1]);
  await expect.poll(subscribers).toBe(1);
  hinted = false;
  await world.front.store.bots.remove(users[0]?.id as number, bot.id);
  await expect.poll(() => hinted).toBe(true);
  await expect.poll(() => noticed).toBe(true);
  release();
  await expect.poll(() => slow.taken.length).toBe(1);
  const { client } = world.front.connection;
  const state = world.cluster.keys.queueState(queueId(bot.id, 1));
  await expect.poll(() => client.hexists(state, 'leased')).toBe(0);
  expect(slow.arrivals.length).toBe(1);
});

/**
 * Sets a route, but holds back the call that installs the route in Redis. Returns the function that lets the call
 * continue.
 */
async function setHeldRoute(bot: number, name: string): Promise<() => Promise<void>> {
  const { hooks } = world.front;
  const { call } = hooks;
  let install = () => {};
  const mayInstall = new Promise<void>((resolve) => {
    install = resolve;
  });
  let began = false;
  hooks.call = async (name, run) => {
    if (name === 'webhooks/set_routes' && !began) {
      began = true;
      await mayInstall;
    }
    return run();
  };
  const books = { url: 'https://127.0.0.1:2/', certificate: null } as unknown as Books;
  const setting = routes().setRoute(bot, routeTo(books, name));
  await expect.poll(() => began).toBe(true);
  return async () => {
    install();
    await setting;
    hooks.call = call;
  };
}

test('a route is not installed if its bot was deleted just after the route was set', async () => {
  const { bot, users } = await makeChats(world.front, 1);
  const install = await setHeldRoute(bot.id, 'late');
  await world.front.store.bots.remove(users[0]?.id as number, bot.id);
  await install();
  expect(await world.front.connection.client.exists(world.cluster.keys.routes(bot.id))).toBe(0);
});

test('if one call deletes a route while another call sets the route, neither call fails', async () => {
  const { bot } = await makeChats(world.front, 1);
  const install = await setHeldRoute(bot.id, 'short');
  expect(await routes().removeRoute(bot.id, 'short', false)).toBe(true);
  await install();
  expect(await routes().routes(bot.id)).toEqual([]);
});

test('if Postgres loses a route, the updates of the route move to the bot’s own queue, and the receiver of the route gets no more updates', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  const broken = await books(onTestFinished, () => 500);
  const main = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 3);
  await routes().set(bot.id, settingsFor(main), keepQueue);
  await routes().setRoute(bot.id, routeTo(broken, 'lost'));
  await Promise.all(users.map((_, person) => say(person, 'a')));
  await expect.poll(() => broken.arrivals.length).toBeGreaterThan(2);
  await world.front.db.query(
    "update webhooks set routes_box = null, version = nextval('control_versions') where bot_id = $1",
    [bot.id],
  );
  await routes().refresh(bot.id, 0);
  await main.tookIn(3);
  const before = broken.arrivals.length;
  await say(0, 'b');
  await main.tookIn(4);
  expect(broken.arrivals.length).toBe(before);
  expect(await pending(bot.id, 1)).toBe(0);
});

test('a replay is refused if the queue of a route has too little room', async ({ onTestFinished }) => {
  const taking = await books(onTestFinished);
  const { bot, say } = await makeChats(world.front, 1);
  await routes().setRoute(bot.id, routeTo(taking, 'all'));
  const { replays } = world.front.store;
  const length = storeLimits.queue_length_max;
  onTestFinished(() => void Object.assign(storeLimits, { queue_length_max: length }));
  Object.assign(storeLimits, { queue_length_max: storeLimits.replay_max });
  expect(await replays.replay(bot.id, allDead)).toMatchObject({ queued: 0 });
  await say(0, 'a');
  expect(await pending(bot.id, 0)).toBe(0);
  await expect(replays.replay(bot.id, allDead)).rejects.toMatchObject({ kind: 'too_many_requests' });
});

test('a route is removed after its receiver has answered 410 for 23 hours, and the owner is notified', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  const gone = await books(onTestFinished, () => 410);
  const main = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 1);
  await routes().setRoute(bot.id, routeTo(gone, 'gone'));
  await routes().setRoute(bot.id, routeTo(main, 'fine'));
  // Sets the webhook after the routes, because this must not protect the failing route from removal.
  await routes().set(bot.id, settingsFor(main), keepQueue);
  await say(0, 'a');
  const { client } = world.front.connection;
  const state = world.cluster.keys.queueState(queueId(bot.id, 1));
  await expect.poll(() => client.hget(state, 'gone')).not.toBeNull();
  await client.hset(state, 'gone', Date.now() - 23 * 3_600_000 - 60_000);
  await expect.poll(async () => (await routes().routes(bot.id)).map(({ name }) => name)).toEqual(['fine']);
  await main.tookIn(1);
  const notices = await world.front.db.query<{ notice: object }>(
    'select notice from notices where user_id = $1',
    [users[0]?.id],
  );
  expect(notices.map(({ notice }) => notice)).toEqual([
    { kind: 'webhook_route_removed', route: 'gone', bot: bot.id, username: bot.sender.profile.u },
  ]);
});

test('after the signing secret is replaced, the requests to a route are signed with both secrets', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  const taking = await books(onTestFinished);
  const { bot, users, say } = await makeChats(world.front, 1);
  await routes().setRoute(bot.id, routeTo(taking, 'all'));
  const signatures = () =>
    taking.taken.map(({ headers }) => String(headers['webhook-signature']).split(' ').length);
  await say(0, 'a');
  await taking.tookIn(1);
  await world.front.store.signingSecrets.rotate(users[0]?.id as number, bot.id);
  await say(0, 'b');
  await taking.tookIn(2);
  expect(signatures()).toEqual([1, 2]);
});

test('if a worker missed the hint about the new URL of a route, it still sends later updates only to the new receiver', async ({
  onTestFinished,
}) => {
  const { node, worker } = await world.worker();
  onTestFinished(() => worker.stop());
  node.hooks.hint = (_, text) => text !== 'w';
  const former = await books(onTestFinished);
  const next = await books(onTestFinished);
  const { bot, say } = await makeChats(world.front, 1);
  await routes().setRoute(bot.id, routeTo(former, 'all'));
  await say(0, 'a');
  await former.tookIn(1);
  await routes().setRoute(bot.id, routeTo(next, 'all'));
  for (const word of ['b', 'c', 'd']) await say(0, word);
  await next.tookIn(3);
  expect(former.arrivals.map(({ text }) => text)).toEqual(['a']);
});

test('if an update of a deleted route is replayed, a newer route in the same slot does not get this update', async ({
  onTestFinished,
}) => {
  await startWorker(onTestFinished);
  const former = await books(onTestFinished, () => 500);
  const [main, next] = [await books(onTestFinished), await books(onTestFinished)];
  const { bot, say } = await makeChats(world.front, 1);
  await routes().set(bot.id, settingsFor(main), keepQueue);
  const retry = { first_delay: 600, factor: 1, max_age: 86_400 };
  await routes().setRoute(bot.id, routeTo(former, 'former', { retry }));
  await say(0, 'a');
  await expect
    .poll(async () => (await world.front.store.queues.info(queueId(bot.id, 1))).nextTryAt)
    .not.toBeNull();
  await dayPasses(queueId(bot.id, 1));
  await routes().setRoute(bot.id, routeTo(former, 'former'));
  await expect.poll(() => pending(bot.id, 1)).toBe(0);
  await world.cluster.flush();
  const letters = async () => (await world.front.store.replays.list(bot.id, 0, 10, 1_000)).items;
  expect(await letters()).toMatchObject([{ route: 'former', reason: 'expired' }]);
  await routes().removeRoute(bot.id, 'former', false);
  for (let n = 0; n < limits.route_slots_max - limits.routes_max; n++) {
    await routes().setRoute(bot.id, routeTo(next, 'passing'));
    await routes().removeRoute(bot.id, 'passing', false);
  }
  // Moves the clock forward by two minutes. The dead letter is then older than the new route in its slot, even if the
  // clocks of two nodes differ by a minute.
  const clock = vi.spyOn(systemTime, 'now').mockImplementation(() => Date.now() + 120_000);
  await routes().setRoute(bot.id, routeTo(next, 'next'));
  clock.mockRestore();
  const [later] = await routes().routes(bot.id);
  expect(later?.slot).toBe(1);
  const { replays } = world.front.store;
  expect(await letters()).toMatchObject([{ route: undefined }]);
  expect((await replays.list(bot.id, 0, 10, 1_000, later)).items).toEqual([]);
  expect(await replays.replay(bot.id, { ...allDead, route: later })).toMatchObject({ queued: 0 });
  expect(await replays.replay(bot.id, allDead)).toMatchObject({ queued: 1 });
  await main.tookIn(1);
  expect(next.arrivals).toEqual([]);
});

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { hookedAmong, loadFailing } from '../../src/postgres/bots/ranking.js';
import { mostFailing } from '../../src/processes/rankings.js';
import { queueId } from '../../src/store/core/queue_ids.js';
import type { NewAttempt } from '../../src/store/webhooks/attempts.js';
import {
  makeBot,
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
} from '../support/store.js';

const settings = {
  ...{ url: 'https://203.0.113.9/x', secretToken: null, certificate: null },
  ...{ maxConnections: 40, address: '203.0.113.9' },
};
const minute = 60_000;
let cluster: TestCluster;
let node: TestNode;
let owner: Person;
let bot: Person;
beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
});
afterAll(() => cluster.close());
beforeEach(async () => {
  owner = await makeUser(node);
  bot = await makeBot(node, owner);
  await hook();
});

async function hook(): Promise<void> {
  await node.store.webhooks.set(bot.id, settings, { drop: false, mask: null });
  await node.db.query("update webhooks set set_at = now() - interval '2 hours' where bot_id = $1", [bot.id]);
}

async function tried(minutes: number, error: string | null, on = node, queue = bot.id): Promise<void> {
  const attempt: NewAttempt = {
    ...{ bot: queue, updateId: 7, at: Date.now() - minutes * minute, delivered: error === null },
    ...{ status: error === null ? 200 : null, error, latencyMs: 1, answer: '', tries: 1 },
    ...{ nextTryAt: null, dead: null, record: null },
  };
  const counts = { delivered: error === null ? 1 : 0, failed: error === null ? 0 : 1, dead: 0, unkept: 0 };
  await on.store.attempts.append([attempt], new Map([[queue, counts]]));
}

const notices = async () =>
  (
    await node.db.query<{ notice: object }>('select notice from notices where user_id = $1 order by id', [
      owner.id,
    ])
  ).map(({ notice }) => notice);

test('if a webhook has failed for an hour, the owner is notified once, with the last error', async () => {
  await tried(59, 'Connection timed out');
  await tried(0, 'Connection timed out');
  expect(await notices()).toEqual([]);
  await node.db.query(
    "update webhooks set failing_since = failing_since - interval '1 minute' where bot_id = $1",
    [bot.id],
  );
  const other = await cluster.node();
  await Promise.all([tried(0, 'Connection refused'), tried(0, 'Connection refused', other)]);
  await tried(0, 'Connection refused');
  const [notice, ...more] = await notices();
  expect(more).toEqual([]);
  expect(notice).toEqual({
    ...{ kind: 'webhook_failing', bot: bot.id, username: bot.sender.profile.u },
    ...{ since: expect.any(Number), error: 'Connection refused' },
  });
  const { since } = notice as { since: number };
  expect(Math.abs(Date.now() / 1_000 - since - 3_600)).toBeLessThan(30);
});

test('an owner is notified again if the webhook fails for another hour after a successful delivery', async () => {
  await tried(70, 'a');
  await tried(65, null);
  await tried(50, 'b');
  await tried(0, 'b');
  expect(await notices()).toHaveLength(1);
  await tried(0, null);
  await tried(61, 'c');
  expect(await notices()).toMatchObject([{ error: 'a' }, { error: 'c' }]);
});

test('after a webhook is set again, it counts as healthy, even if failures of the previous webhook are recorded late', async () => {
  await tried(59, 'a');
  await node.store.webhooks.set(bot.id, settings, { drop: false, mask: null });
  await tried(90, 'a');
  expect(await notices()).toEqual([]);
  // A rotation of the signing secret does not restart the one-hour period of failures.
  await node.db.query("update webhooks set set_at = now() - interval '2 hours' where bot_id = $1", [bot.id]);
  await node.db.query("update webhooks set failing_since = now() - interval '61 minutes' where bot_id = $1", [
    bot.id,
  ]);
  await node.store.signingSecrets.rotate(owner.id, bot.id);
  await tried(0, 'b');
  expect(await notices()).toMatchObject([{ error: 'b' }]);
});

test('an owner gets no notice of a failing webhook if the bot now polls or the webhook was deleted', async () => {
  await node.store.webhooks.remove(bot.id, false);
  await tried(90, 'a');
  await tried(0, 'a');
  expect(await notices()).toEqual([]);
});

const setRoute = (name: string) =>
  node.store.webhooks.setRoute(bot.id, {
    ...{ ...settings, name, mask: null, retry: null, chats: null, percent: 100 },
    ...{ position: null, drop: false },
  });
const triedOn = (slot: number, error: string | null, on = node) => tried(0, error, on, queueId(bot.id, slot));
const anHourPasses = () =>
  node.db.query("update failing_routes set since = since - interval '60 minutes' where bot_id = $1", [
    bot.id,
  ]);

test('if a route has failed for an hour, the owner is notified once, with the name and the last error of the route', async () => {
  await setRoute('pay');
  await setRoute('fine');
  await triedOn(1, 'Connection timed out');
  expect(await notices()).toEqual([]);
  await anHourPasses();
  const other = await cluster.node();
  await Promise.all([triedOn(1, 'Connection refused'), triedOn(1, 'Connection refused', other)]);
  await triedOn(1, 'Connection refused');
  await triedOn(2, 'Connection refused');
  expect(await notices()).toEqual([
    {
      ...{ kind: 'webhook_route_failing', route: 'pay', bot: bot.id, username: bot.sender.profile.u },
      ...{ since: expect.any(Number), error: 'Connection refused' },
    },
  ]);
});

test('the one-hour period of a failing route restarts after a delivery, and after the route is set', async () => {
  await setRoute('pay');
  const begin = async (heal: () => Promise<unknown>) => {
    await triedOn(1, 'a');
    await anHourPasses();
    await heal();
    await triedOn(1, 'b');
    expect(await notices()).toEqual([]);
  };
  await begin(() => triedOn(1, null));
  await node.db.query('delete from failing_routes where bot_id = $1', [bot.id]);
  await begin(() => setRoute('pay'));
});

test('an owner gets no notice of a route that was deleted', async () => {
  await setRoute('pay');
  await node.store.webhooks.removeRoute(bot.id, 'pay', false);
  await triedOn(1, 'a');
  await anHourPasses();
  await triedOn(1, 'a');
  expect(await notices()).toEqual([]);
});

test('a delivery failure of a route leaves no row if the failure is recorded after the route was deleted', async () => {
  await setRoute('pay');
  await setRoute('fine');
  await node.store.webhooks.removeRoute(bot.id, 'pay', false);
  await triedOn(1, 'a');
  await triedOn(2, 'a');
  const rows = await node.db.query('select slot from failing_routes where bot_id = $1', [bot.id]);
  expect(rows).toEqual([{ slot: 2 }]);
});

test('if the routes of a bot cannot be decrypted, the attempts of other bots are still stored', async () => {
  await setRoute('pay');
  await node.db.query("update webhooks set routes_box = '\\x00'::bytea where bot_id = $1", [bot.id]);
  const other = await makeBot(node, owner);
  const attemptOf = (queue: number): NewAttempt => ({
    ...{ bot: queue, updateId: 7, at: Date.now(), delivered: false, status: null, error: 'a', latencyMs: 1 },
    ...{ answer: '', tries: 1, nextTryAt: null, dead: null, record: null },
  });
  const counts = { delivered: 0, failed: 1, dead: 0, unkept: 0 };
  const queues = [queueId(bot.id, 1), other.id];
  await node.store.attempts.append(queues.map(attemptOf), new Map(queues.map((queue) => [queue, counts])));
  const stored = [bot.id, other.id].map((id) => node.store.attempts.counts(id));
  expect((await Promise.all(stored)).map(({ failed }) => failed)).toEqual([1, 1]);
});

test('a bot with failed attempts is in the ranking of failing bots only while it has a webhook or a route', async () => {
  const isRanked = async () => (await mostFailing(node, 1_000)).includes(bot.id);
  await setRoute('pay');
  await node.store.webhooks.remove(bot.id, false);
  await triedOn(1, 'a');
  expect(await isRanked()).toBe(true);
  await node.store.webhooks.removeRoute(bot.id, 'pay', false);
  expect(await isRanked()).toBe(false);
  await setRoute('pay');
  expect(await isRanked()).toBe(true);
});

test('a bot without a webhook is ranked among the failing bots while one of its routes fails', async () => {
  await node.store.webhooks.remove(bot.id, false);
  await setRoute('pay');
  const isListed = async () => (await loadFailing(node.db, 1_000)).includes(bot.id);
  const hooked = (await hookedAmong(node.db, [bot.id])).map(({ bot: id }) => id);
  expect([await isListed(), hooked]).toEqual([false, [bot.id]]);
  await triedOn(1, 'a');
  expect(await isListed()).toBe(true);
  await triedOn(1, null);
  expect(await isListed()).toBe(false);
});

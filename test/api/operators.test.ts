import pg from 'pg';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import type { History, overview } from '../../src/wire/admin_results.js';
import { type Books, keepBooks } from '../delivery/world.js';
import { openAnywhere } from '../support/cluster.js';
import { ageQueue } from '../support/queues.js';
import {
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { longTest } from '../support/tiers.js';

let service: Service;
let operator: { readonly token: string };
let books: Books;
let owner: TestUser;
let bot: TestBot;
let status = 200;
/**
 * The timeout of checks with `expect.poll`. The timeout is shorter than the time for which a crashed process stays
 * listed.
 */
const patiently = { timeout: 20_000 };
type Shown = ReturnType<typeof overview.parse>;

beforeAll(async () => {
  service = await startService({ fronts: 2, extraEnv: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' } });
  operator = { token: service.adminToken };
  books = await keepBooks(() => status);
  owner = await service.newUser('olga');
  bot = await service.newBot(owner, 'seen');
  await service.openChat(owner, bot);
  await resultOf(service.bot(bot, 'setWebhook', { url: '', drop_pending_updates: true }));
});
afterAll(async () => {
  await service?.stop();
  await books?.close();
});

const admin = (verb: string, path: string, body?: unknown, front = 0) =>
  service.app(operator, verb, `/api/admin/${path}`, body, front);
const look = async (front = 0): Promise<Shown> => resultOf(admin('GET', 'overview', undefined, front));
const say = (text: string) => resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));
const hook = () => {
  const { url, certificate } = books;
  return resultOf(service.bot(bot, 'setWebhook', { url, certificate }));
};
const letters = async (query = '') => resultOf(admin('GET', `bots/${bot.id}/dead_letters${query}`));
const ofBot = async () => (await itemsOf(admin('GET', `bots?bot=${bot.username}`)))[0];

/** Creates dead letters: updates that no receiver accepted for a day. Returns their ids. */
async function die(...texts: string[]): Promise<number[]> {
  await resultOf(service.bot(bot, 'deleteWebhook'));
  for (const text of texts) await say(text);
  await ageQueue(service, bot.id);
  await hook();
  await expect.poll(async () => (await letters()).items.length, patiently).toBe(texts.length);
  return (await letters()).items.map(({ update_id }: { update_id: number }) => update_id);
}

test.each([
  ['GET', '/api/admin/overview'],
  ['GET', '/api/admin/history'],
  ['GET', '/api/admin/bots'],
  ['GET', '/api/admin/bots/1/dead_letters'],
  ['POST', '/api/admin/bots/1/dead_letters/replay'],
])('%s %s refuses callers who are not operators', async (verb, path) => {
  for (const token of ['', 'wrong', owner.token])
    expect(await service.app({ token }, verb, path)).toMatchObject({
      status: 401,
      body: { ok: false, error_code: 401, description: 'Unauthorized' },
    });
});

test('every front lists all processes, with counters that never decrease', async () => {
  await expect
    .poll(async () => (await look()).nodes.map(({ role }) => role), patiently)
    .toEqual(['deliver', 'flush', 'front', 'front']);
  const [first, second] = [await look(0), await look(1)];
  expect(second.nodes.map(({ id }) => id)).toEqual(first.nodes.map(({ id }) => id));
  expect(first.node).not.toBe(second.node);
  const pids = [service.deliver, service.flush, ...service.fronts].map(({ pid }) => pid);
  expect(first.nodes.map(({ pid }) => pid).sort()).toEqual(pids.sort());
  for (const { state, loop_p99_ms, memory_bytes, scripts } of first.nodes) {
    expect([state, typeof loop_p99_ms]).toEqual(['serving', 'number']);
    expect(memory_bytes).toBeGreaterThan(10_000_000);
    expect(scripts).toHaveLength(first.bounds_seconds.length + 1);
  }
  const meOf = ({ nodes }: Shown) => {
    const calls = nodes.flatMap(({ front }) => front?.calls ?? []).filter(({ call }) => call === 'getMe');
    const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0);
    return { ok: sum(calls.map(({ ok }) => ok)), timed: sum(calls.flatMap(({ times }) => times)) };
  };
  const before = meOf(await look());
  for (const front of [0, 1, 0, 1, 0]) await resultOf(service.bot(bot, 'getMe', {}, front));
  await expect
    .poll(async () => meOf(await look()), patiently)
    .toEqual({ ok: before.ok + 5, timed: before.timed + 5 });
  expect(first).toMatchObject({ journal: { quarantined: 0 }, queues: { outbox: 0 } });
  expect(first.redis?.[0]).toMatchObject({ appending: true });
  expect(first.postgres?.connections).toBeGreaterThan(0);
  await expect.poll(async () => (await look()).findings.filter(({ bad }) => bad), patiently).toEqual([]);
});

test('the process list drops processes that stopped reporting', async () => {
  const redis = openAnywhere(service.redis);
  const key = makeKeys(Number(service.env.PARTITIONS ?? 64)).nodes();
  const core = { id: 'x', role: 'later', host: 'h', pid: 1, version: '9.0.0', since_ms: 1, state: 'serving' };
  const [seconds] = (await redis.call('TIME')) as [string];
  const now = Number(seconds) * 1_000;
  await redis.hset(key, {
    x: `${now + 60_000} ${JSON.stringify({ ...core, reported: 'otherwise' })}`,
    quiet: `${now - 10_000} ${JSON.stringify({ ...core, id: 'quiet', role: 'quiet' })}`,
    old: `${now - 31_000} ${JSON.stringify({ ...core, id: 'old', role: 'old' })}`,
    bad: `${now} {`,
  });
  await expect.poll(async () => (await look()).nodes.length, patiently).toBe(6);
  const { nodes, findings } = await look();
  expect(nodes.find(({ id }) => id === 'x')).toMatchObject(core);
  expect(findings.map(({ what }) => what)).toContain('quiet 1 on h stopped reporting');
  expect(findings.map(({ what }) => what).join()).not.toContain('later 1');
  expect((await redis.hkeys(key)).filter((id) => ['old', 'bad'].includes(id))).toEqual([]);
  await redis.hdel(key, 'x', 'quiet');
  redis.disconnect();
});

test('operators see bots ranked by pending updates, failures and dead letters', async () => {
  status = 500;
  await hook();
  await say('one');
  await say('two');
  await expect.poll(async () => (await ofBot()).failed, patiently).toBeGreaterThan(0);
  await expect
    .poll(async () => (await itemsOf(admin('GET', 'bots?order=failures')))[0], patiently)
    .toMatchObject({ id: bot.id, username: bot.username, pending: 2, delivered: 0, dead_letters: 0 });
  const shown = await ofBot();
  expect(shown).toMatchObject({
    webhook_host: new URL(books.url).host,
    failing_since: expect.any(Number),
    last_error: 'Wrong response from the webhook: 500 Internal Server Error',
  });
  const pending = await itemsOf(admin('GET', 'bots?limit=1'));
  expect(pending).toMatchObject([{ id: bot.id, pending: 2 }]);
  expect(await itemsOf(admin('GET', `bots?bot=${bot.id}`))).toMatchObject([{ id: bot.id }]);
  expect(await itemsOf(admin('GET', `bots?bot=%40${bot.username}`))).toMatchObject([{ id: bot.id }]);
  expect(await admin('GET', 'bots?bot=nobody_has_it')).toMatchObject({ status: 404 });
  expect(await admin('GET', 'bots?order=age')).toMatchObject({
    status: 400,
    body: { description: 'Bad Request: parameter "order" must be pending, failures, dead_letters' },
  });
  await resultOf(service.bot(bot, 'setWebhook', { url: '', drop_pending_updates: true }));
});

const failing = async () =>
  (await look()).findings.filter(({ what }) => what.includes(`@${bot.username} `)).map(({ what }) => what);
const since = String.raw`has failed every attempt since \d{4}-\d\d-\d\d \d\d:\d\d UTC`;

/** Makes the recorded failures of the bot a minute older. */
async function ageFailures(): Promise<void> {
  const database = new pg.Client(service.databaseUrl);
  await database.connect();
  for (const [table, column] of [
    ['webhooks', 'failing_since'],
    ['failing_routes', 'since'],
  ])
    await database.query(
      `update ${table} set ${column} = ${column} - interval '1 minute' where bot_id = $1`,
      [bot.id],
    );
  await database.end();
}

longTest(
  'a webhook or route that has failed every attempt for a minute is reported as a finding until a delivery succeeds',
  async () => {
    status = 500;
    const { url, certificate } = books;
    const retry_policy = { first_delay: 1, factor: 1, max_age: 600 };
    await resultOf(service.bot(bot, 'setWebhook', { url, certificate, retry_policy }));
    await resultOf(service.bot(bot, 'setWebhookRoute', { name: 'half', url, certificate, retry_policy }));
    await say('to the route');
    await expect.poll(async () => (await ofBot()).failed, patiently).toBeGreaterThan(0);
    expect(await failing()).toEqual([]);
    const { host } = new URL(url);
    const aged = async () => {
      await ageFailures();
      return failing();
    };
    const found = (which: string) => [
      expect.stringMatching(
        `^the ${which} of @${bot.username} at ${host} ${since}: Wrong response from the webhook: 500`,
      ),
    ];
    await expect.poll(aged, patiently).toEqual(found('webhook route half'));
    await resultOf(service.bot(bot, 'deleteWebhookRoute', { name: 'half' }));
    await expect.poll(aged, patiently).toEqual(found('webhook'));
    status = 200;
    await expect.poll(failing, patiently).toEqual([]);
    await resultOf(service.bot(bot, 'setWebhook', { url: '', drop_pending_updates: true }));
  },
);

longTest(
  'the history contains the deliveries of all processes, and a reader can start at a given point',
  async () => {
    const past = async (query = ''): Promise<History> =>
      resultOf(admin('GET', `history${query}`, undefined, 1));
    const sum = (counts: ReadonlyArray<Readonly<Record<string, number>>>) =>
      counts.reduce((all, { delivered = 0 }) => all + delivered, 0);
    const total = async () => sum((await look()).nodes.map(({ deliver }) => deliver?.outcomes ?? {}));
    await expect.poll(total, patiently).toBeGreaterThan(0);
    const recorded = async () => sum((await past()).points.map(({ deliveries }) => deliveries));
    await expect.poll(async () => (await recorded()) - (await total()), patiently).toBe(0);
    let history = await past();
    // Polls, because the history gets an entry only every 5 s, and on a busy machine a process may miss an entry.
    const newest = async () => {
      history = await past();
      return [history.points.length > 1, history.points.at(-1)];
    };
    await expect
      .poll(newest, patiently)
      .toMatchObject([true, { lag_ms: expect.any(Number), redis_bytes: expect.any(Number) }]);
    const { points, step_ms, bounds_seconds } = history;
    const last = points.at(-1);
    expect(points.map(({ at_ms }) => at_ms % step_ms)).toEqual(points.map(() => 0));
    for (const { times } of points) expect(times).toHaveLength(bounds_seconds.length + 1);
    expect(points.some(({ calls }) => calls > 0)).toBe(true);
    const before = points.at(-2)?.at_ms as number;
    expect((await past(`?after_ms=${before}`)).points[0]).toEqual(last);
    expect(await admin('GET', 'history?after_ms=-1')).toMatchObject({
      status: 400,
      body: { description: 'Bad Request: parameter "after_ms" must be a Unix time in ms' },
    });
    // Without Prometheus, the history covers only the last hour.
    expect(await past('?range=1h')).toMatchObject({ ranges: ['1h'] });
    expect(await admin('GET', 'history?range=6h')).toMatchObject({
      status: 400,
      body: { description: 'Bad Request: no Prometheus is set' },
    });
    expect(await admin('GET', 'history?range=2h')).toMatchObject({ status: 400 });
  },
);

test('operators replay dead letters without seeing the message texts', async () => {
  status = 200;
  const ids = await die('one', 'two', 'three');
  const page = await letters();
  expect(page.items).toEqual(
    ids.map((update_id) => ({ update_id, type: 'message', reason: 'expired', date: expect.any(Number) })),
  );
  const first = await letters('?limit=2');
  expect((await letters(`?cursor=${first.next_cursor}`)).items).toEqual(page.items.slice(2));
  expect(await itemsOf(admin('GET', 'bots?order=dead_letters'))).toMatchObject([
    { id: bot.id, dead_letters: 3 },
  ]);
  const replay = (body: object) => admin('POST', `bots/${bot.id}/dead_letters/replay`, body);
  expect(await replay({ from_update_id: ids[1], to_update_id: ids[0] })).toMatchObject({ status: 400 });
  expect(await resultOf(replay({ from_update_id: ids[1], to_update_id: ids[1] }))).toEqual({
    ...{ queued: 1, from_update_id: ids[1], to_update_id: ids[1] },
  });
  expect(await resultOf(replay({}))).toEqual({ queued: 2, from_update_id: ids[0], to_update_id: ids[2] });
  expect(await resultOf(replay({}))).toEqual({ queued: 0 });
  // Ignores the updates of other tests. They may still arrive, because a request may have been in flight when its
  // update was dropped.
  const taken = () => books.taken.map(({ updateId }) => updateId).filter((id) => ids.includes(id));
  await expect.poll(taken, patiently).toEqual([ids[1], ids[0], ids[2]]);
  const { items } = await resultOf(service.app(owner, 'GET', `/api/me/bots/${bot.id}/audit`));
  const reported = items.filter(({ event }: { event: string }) => event === 'updates_replayed');
  expect(reported).toMatchObject([
    { actor: { type: 'operator' }, details: { queued: 2, from_update_id: ids[0], to_update_id: ids[2] } },
    { actor: { type: 'operator' }, details: { queued: 1, from_update_id: ids[1], to_update_id: ids[1] } },
  ]);
  const missing = await admin('POST', 'bots/999999999/dead_letters/replay', {});
  expect(missing).toMatchObject({ status: 404, body: { description: 'Not Found: bot not found' } });
});

test('a process that stops cleanly is removed from the process list immediately', async () => {
  const [, second] = service.fronts;
  const pids = async () => (await look()).nodes.map(({ pid }) => pid);
  const was = second?.pid as number;
  expect(await pids()).toContain(was);
  await second?.stop();
  await expect.poll(pids, patiently).not.toContain(was);
});

test("every front serves the operators' page with a content security policy that allows no other host", async () => {
  const load = async (path: string, method: 'GET' | 'POST' = 'GET') => {
    const answer = await request(service.fronts[0].url + path, { method });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  };
  const page = await load('/ops');
  const policy = String(page.headers['content-security-policy']).split('; ');
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'"])
    expect(policy).toContain(part);
  for (const part of ["connect-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"])
    expect(policy).toContain(part);
  expect(policy.join()).not.toMatch(/unsafe|https:|blob:|data:|\*/);
  const loaded = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path as string);
  expect(loaded).toHaveLength(3);
  for (const path of loaded) {
    expect(path).toMatch(/^\/ops\//);
    expect((await load(path)).status, path).toBe(200);
  }
  expect((await load('/app')).text).not.toContain('/ops');
  expect((await load('/ops', 'POST')).status).toBe(405);
  expect((await load('/ops/page.html')).status).toBe(404);
});

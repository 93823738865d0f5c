/** Keys and peppers are rotated while two fronts serve: no call fails, and then nothing needs the former ones. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { boxColumns } from '../../src/postgres/rotation.js';
import { conflict } from '../../src/roles/ring.js';
import { createSecrets } from '../../src/store/secrets.js';
import { petrel } from '../support/command.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { atMost, patienceMs, report } from './report.js';
import { findSecrets } from './secrets.js';

/** As long as ids of keys may be, so that it is found in a box and by accident nowhere else. */
const formerId = 'aFormerKeysIdent';
const key = (id: string) => ({ id, text: `${id}:${randomBytes(32).toString('base64')}` });
const [former, next] = [key(formerId), key('k2')];
const [formerPepper, nextPepper] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')];
/** How a box under the former key begins. */
const formerBox = `\u0010${formerId}`;

let service: Service;
let owner: TestUser;
let sleeper: TestUser;
let bots: TestBot[];
let webhookBot: TestBot;
/** Fronts that the load may call. */
const live = new Set([0, 1]);

beforeAll(async () => {
  const extraEnv = {
    PARTITIONS: '4',
    // The next ones are known to every node before any makes something with them.
    TOKEN_KEYS: `${former.text},${next.text}`,
    TOKEN_PEPPER: `${formerPepper},${nextPepper}`,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  };
  service = await startService({ fronts: 2, extraEnv });
  owner = await service.newUser('owner');
  sleeper = await service.newUser('sleeper');
  bots = await Promise.all(Array.from({ length: 12 }, () => service.newBot(owner, 'rotated')));
  webhookBot = bots.pop() as TestBot;
  await Promise.all(bots.map((bot) => service.openChat(owner, bot)));
  const settings = { url: 'https://127.0.0.1:9/hook', secret_token: 'of_the_owner' };
  await resultOf(service.bot(webhookBot, 'setWebhook', settings));
  await resultOf(service.app(owner, 'POST', `/api/me/bots/${webhookBot.id}/webhook/secret/rotate`));
});
afterAll(() => service?.stop());

const tokenOf = (bot: TestBot, front = 0) =>
  service.app(owner, 'GET', `/api/me/bots/${bot.id}/token`, undefined, front);

/** Calls of every kind that needs a token or a box, to the fronts that are live, each after the other. */
function load() {
  const failed: string[] = [];
  const ended = new AbortController();
  let calls = 0;
  const open = new Map<number, number>([
    [0, 0],
    [1, 0],
  ]);
  const one = async (bot: TestBot, round: number): Promise<void> => {
    const front = [...live][round % live.size] as number;
    open.set(front, (open.get(front) as number) + 1);
    const kinds = [
      () => service.bot(bot, 'getMe', {}, front),
      () => service.bot(bot, 'sendMessage', { chat_id: owner.id, text: `${round}` }, front),
      () => tokenOf(bot, front),
      () => service.app(owner, 'GET', '/api/me', undefined, front),
      () => service.bot(webhookBot, 'getWebhookInfo', {}, front),
      () => service.app(owner, 'GET', `/api/me/bots/${webhookBot.id}/webhook/secret`, undefined, front),
    ];
    const call = kinds[round % kinds.length] as (typeof kinds)[number];
    const answer = await call().catch((error: Error) => ({ status: 0, body: error.message }));
    open.set(front, (open.get(front) as number) - 1);
    calls++;
    if (answer.status !== 200) failed.push(`${answer.status} ${JSON.stringify(answer.body)}`);
  };
  const running = bots.map(async (bot, lane) => {
    for (let round = lane; !ended.signal.aborted; round++) {
      await one(bot, round);
      await sleep(2);
    }
  });
  return {
    failed,
    calls: () => calls,
    /** Takes a front out of the load, as a balancer does, and waits for its calls. */
    async drain(front: number) {
      live.delete(front);
      while ((open.get(front) as number) > 0) await sleep(2);
    },
    async end() {
      ended.abort();
      await Promise.all(running);
    },
  };
}

async function restart(role: Service['deliver']): Promise<void> {
  await role.stop();
  await role.start();
}

/** Restarts fronts, one after the other. */
async function roll(running: ReturnType<typeof load>, fronts: readonly number[]): Promise<void> {
  for (const front of fronts) {
    await running.drain(front);
    await restart(service.fronts[front] as Service['deliver']);
    live.add(front);
  }
}

test(
  'keys and peppers rotate under load, and no call fails',
  async () => {
    const keyed = async (id: string) => {
      const url = `${service.fronts[0].url}/bot${bots[0]?.token}/sendMessage?chat_id=${owner.id}&text=once`;
      return (await fetch(url, { headers: { 'idempotency-key': id } })).json();
    };
    const first = await keyed('before');
    const running = load();
    service.env.TOKEN_KEYS = `${next.text},${former.text}`;
    service.env.TOKEN_PEPPER = `${nextPepper},${formerPepper}`;
    await Promise.all([restart(service.deliver), restart(service.flush), roll(running, [0, 1])]);
    const before = await findSecrets(service, [formerBox], []);
    const calls = running.calls();
    // Two at a time do nothing twice.
    const [one, two] = await Promise.all([
      petrel(service.env, 'tokens', 'rotate-keys'),
      petrel(service.env, 'tokens', 'rotate-keys'),
    ]);
    for (const ran of [one, two].filter(({ code }) => code !== 0)) expect(ran.log).toContain('run it again');
    const last = await petrel(service.env, 'tokens', 'rotate-keys');
    expect(last.log).toBe('');
    expect(last.out).toContain(`everything is under k2; no box needs ${formerId} any more`);
    expect(last.out).toContain('sealed anew  0 bot tokens, 0 webhooks, 0 kept answers');
    const during = running.calls() - calls;
    const { found } = await findSecrets(service, [formerBox], []);
    expect(found).toEqual([]);
    // What is kept at all under the former key is found before: tokens, webhooks and their copies, kept answers, the root.
    for (const place of [
      /table bots/,
      /table webhooks/,
      /key \{[^}]*\}:webhook:/,
      /key \{[^}]*\}:idempotency:/,
    ])
      expect(before.found.filter((where) => place.test(where))).not.toEqual([]);
    expect(await keyed('before')).toEqual(first);
    // Used since, the owner's token has moved; that of who sleeps has not.
    await resultOf(service.app(owner, 'GET', '/api/me', undefined, 1));
    expect(last.out).toMatch(/up to [12] tokens? of people may still need a former pepper/);
    service.env.TOKEN_KEYS = next.text;
    service.env.TOKEN_PEPPER = nextPepper;
    await roll(running, [0]);
    await running.end();
    report('R17', 'keys and peppers rotated', { calls: running.calls(), during }, [
      atMost('failed calls', running.failed.length, 0),
    ]);
    expect(running.failed).toEqual([]);
    expect(during).toBeGreaterThan(50);
    expect((await service.app(sleeper, 'GET', '/api/me')).status).toBe(401);
  },
  patienceMs,
);

test('a node that lacks the key says so before it serves', async () => {
  const [key, pepper] = await Promise.all([
    petrel({ ...service.env, TOKEN_KEYS: former.text }, 'webhooks', 'list'),
    petrel({ ...service.env, TOKEN_PEPPER: formerPepper }, 'webhooks', 'list'),
  ]);
  expect([key.code, pepper.code]).toEqual([1, 1]);
  expect(key.log).toContain('TOKEN_KEYS lacks the key k2');
  expect(pepper.log).toContain('TOKEN_PEPPER differs');
});

test('nodes run side by side only if each can open what the other seals', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id, key: randomBytes(32) })) as [Ring, Ring, Ring];
  const checks = (peppers: string[], ...ring: Ring[]) => createSecrets(peppers, ring).checks;
  const p = ['p'.repeat(32), 'q'.repeat(32)] as [string, string];
  expect(conflict(checks([p[0]], a), checks([p[0]], a))).toBeNull();
  expect(conflict(checks([p[0]], a), checks([p[0]], a, b))).toBeNull();
  expect(conflict(checks([p[0]], b, a), checks([p[0]], a, b))).toBeNull();
  expect(conflict(checks([p[0]], b, a), checks([p[0]], a))).toMatch(/lacks the key b/);
  expect(conflict(checks([p[0]], a), checks([p[0]], c, a))).toMatch(/TOKEN_KEYS lacks the key c/);
  const other = { id: 'a', key: randomBytes(32) };
  expect(conflict(checks([p[0]], a), checks([p[0]], other))).toMatch(/a is another key/);
  expect(conflict(checks([p[1], p[0]], a), checks([p[0]], a))).toMatch(/lacks the first pepper/);
  expect(conflict(checks([p[0]], a), checks([p[1], p[0]], a))).toMatch(/TOKEN_PEPPER lacks/);
});
type Ring = { readonly id: string; readonly key: Buffer };

test('every column that holds a box is sealed anew', async () => {
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and column_name like '%box%' order by 1`,
  );
  await client.end();
  const known = Object.entries(boxColumns).flatMap(([table, columns]) =>
    columns.map((column) => `${table}.${column}`),
  );
  // The outbox holds no boxes, but copies to be made.
  const boxes = rows.map(({ name }) => name).filter((name) => !/outbox/.test(name));
  expect(boxes).toEqual(known.sort());
});

/**
 * Rotates keys and peppers while two fronts serve. No call fails, and afterwards no value needs the previous keys or
 * peppers.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { boxColumns } from '../../src/postgres/accounts/rotation.js';
import { conflict } from '../../src/processes/node_keys.js';
import { makeToken } from '../../src/rules/token.js';
import { createSecrets } from '../../src/store/core/secrets.js';
import { petrel, startPetrel } from '../support/command.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { atMost, patienceMs, report } from './report.js';
import { findSecrets } from './secrets.js';
import { eventually } from './world.js';

/**
 * A key id of the maximum length. No other text contains it by chance, so a search finds it only in encrypted values.
 */
const formerId = 'aFormerKeysIdent';
const makeKey = (id: string, key: Buffer) => ({ id, key, text: `${id}:${key.toString('base64')}` });
const key = (id: string) => makeKey(id, randomBytes(32));
const [former, next] = [key(formerId), key('k2')];
const [formerPepper, nextPepper] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')];
const formerBox = `\u0010${formerId}`;

let service: Service;
let owner: TestUser;
let sleeper: TestUser;
let bots: TestBot[];
let webhookBot: TestBot;
const live = new Set([0, 1]);

beforeAll(async () => {
  const extraEnv = {
    PARTITIONS: '4',
    // All nodes get the next key and pepper before any node uses them to encrypt.
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
  const settings = { url: 'https://127.0.0.1:2/hook', secret_token: 'of_the_owner' };
  await resultOf(service.bot(webhookBot, 'setWebhook', settings));
  await resultOf(service.bot(webhookBot, 'setWebhookRoute', { name: 'rotated', ...settings }));
  await resultOf(service.app(owner, 'POST', `/api/me/bots/${webhookBot.id}/webhook/secret/rotate`));
});
afterAll(() => service?.stop());

const tokenOf = (bot: TestBot, front = 0) =>
  service.app(owner, 'GET', `/api/me/bots/${bot.id}/token`, undefined, front);

/** Makes calls of every kind that need a token or an encrypted value, to the live fronts in turn. */
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
      () => service.bot(webhookBot, 'getWebhookRoutes', {}, front),
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

/**
 * Creates bots with the keys of the first nodes. There are more bots than fit into one batch of a rotation. Returns
 * their tokens.
 */
async function crowd(client: pg.Client, count: number): Promise<string[]> {
  const secrets = createSecrets([formerPepper], [{ id: formerId, key: former.key }]);
  const { rows } = await client.query<{ id: string }>(
    "select nextval('ids') as id from generate_series(1, $1)",
    [count],
  );
  const made = rows.map(({ id }) => ({ id, token: makeToken('bot', Number(id), randomBytes(32)) }));
  await client.query(
    `insert into bots (id, owner_id, username, name, token_hmac, token_box)
       select id, $4, 'crowd_' || id || '_bot', 'Crowd', hmac, box
         from unnest($1::bigint[], $2::bytea[], $3::bytea[]) as made(id, hmac, box)`,
    [
      made.map(({ id }) => id),
      made.map(({ token }) => secrets.lookup(token)),
      made.map(({ id, token }) => secrets.seal(token, `bot:${id}`)),
      owner.id,
    ],
  );
  return made.map(({ token }) => token);
}

/** Starts a rotation, which stops at a bot whose row is locked. Kills the rotation while it waits for this row. */
async function rotateInPart(): Promise<string[]> {
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  const tokens = await crowd(client, 450);
  await client.query('begin');
  await client.query('select 1 from bots order by id desc limit 1 for update');
  const rotation = startPetrel(service.env, 'tokens', 'rotate-keys');
  const ended = once(rotation, 'exit');
  const under = async (id: string) => {
    const text = 'select count(*)::int as count from bots where substr(token_box, 2, length($1)) = $1::bytea';
    return (await client.query<{ count: number }>(text, [Buffer.from(id)])).rows[0]?.count ?? 0;
  };
  await eventually('a batch is encrypted again', async () => (await under('k2')) >= 200);
  rotation.kill('SIGKILL');
  await ended;
  await client.query('rollback');
  expect(await under(formerId)).toBeGreaterThan(0);
  await client.end();
  return tokens;
}

async function restart(role: Service['deliver']): Promise<void> {
  await role.stop();
  await role.start();
}

async function roll(running: ReturnType<typeof load>, fronts: readonly number[]): Promise<void> {
  for (const front of fronts) {
    await running.drain(front);
    await restart(service.fronts[front] as Service['deliver']);
    live.add(front);
  }
}

/** Returns the log lines. Leaves out a warning that Redis with Sentinels always causes in this test. */
const troublesIn = (log: string) =>
  log.split('\n').filter((line) => line !== '' && !line.includes('min-replicas-to-write'));

test(
  'R17: no call fails while keys and peppers rotate under load',
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
    // The killed run has already rotated some values. Two concurrent runs must rotate the remaining values without
    // processing any value twice.
    const crowded = await rotateInPart();
    const [one, two] = await Promise.all([
      petrel(service.env, 'tokens', 'rotate-keys'),
      petrel(service.env, 'tokens', 'rotate-keys'),
    ]);
    for (const ran of [one, two].filter(({ code }) => code !== 0))
      expect(ran.log).toContain('run this command again');
    // Runs the command again while it reports changes that must still be copied to Redis.
    let last = await petrel(service.env, 'tokens', 'rotate-keys');
    for (let tries = 0; last.code !== 0 && tries < 10; tries++) {
      expect(last.log).toContain('run this command again');
      last = await petrel(service.env, 'tokens', 'rotate-keys');
    }
    expect(troublesIn(last.log)).toEqual([]);
    expect(last.out).toContain(`everything is encrypted with k2; ${formerId} can be removed`);
    expect(last.out).toContain('re-encrypted  0 bot tokens, 0 webhooks, 0 kept answers');
    const during = running.calls() - calls;
    const { found } = await findSecrets(service, [formerBox], []);
    expect(found).toEqual([]);
    // Before the rotation, the search finds all values that are encrypted with the former key: tokens, webhooks and
    // their copies, stored answers, and the root.
    for (const place of [
      /table bots/,
      /table webhooks/,
      /key \{[^}]*\}:webhook:/,
      /key \{[^}]*\}:idempotency:/,
    ])
      expect(before.found.filter((where) => place.test(where))).not.toEqual([]);
    expect(await keyed('before')).toEqual(first);
    for (const token of [crowded[0], crowded.at(-1)] as [string, string])
      expect((await service.bot(token, 'getMe')).status).toBe(200);
    // The owner’s token is already stored under the next pepper, because the owner used it during the rotation. Unused
    // tokens of people are still stored under the former pepper.
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

test('a node that lacks a key reports the missing key before it serves requests', async () => {
  const [key, pepper] = await Promise.all([
    petrel({ ...service.env, TOKEN_KEYS: former.text }, 'webhooks', 'list'),
    petrel({ ...service.env, TOKEN_PEPPER: formerPepper }, 'webhooks', 'list'),
  ]);
  expect([key.code, pepper.code]).toEqual([1, 1]);
  expect(key.log).toContain('TOKEN_KEYS lacks the key k2');
  expect(pepper.log).toContain('TOKEN_PEPPER does not contain');
});

test('two nodes can run together only if each can decrypt what the other encrypts', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id, key: randomBytes(32) })) as [Ring, Ring, Ring];
  const checks = (peppers: string[], ...ring: Ring[]) => createSecrets(peppers, ring).checks;
  const p = ['p'.repeat(32), 'q'.repeat(32)] as [string, string];
  expect(conflict(checks([p[0]], a), checks([p[0]], a))).toBeNull();
  expect(conflict(checks([p[0]], a), checks([p[0]], a, b))).toBeNull();
  expect(conflict(checks([p[0]], b, a), checks([p[0]], a, b))).toBeNull();
  expect(conflict(checks([p[0]], b, a), checks([p[0]], a))).toMatch(/lacks the key b/);
  expect(conflict(checks([p[0]], a), checks([p[0]], c, a))).toMatch(/TOKEN_KEYS lacks the key c/);
  const other = { id: 'a', key: randomBytes(32) };
  expect(conflict(checks([p[0]], a), checks([p[0]], other))).toMatch(/a is a different key/);
  expect(conflict(checks([p[1], p[0]], a), checks([p[0]], a))).toMatch(/lacks the first pepper/);
  expect(conflict(checks([p[0]], a), checks([p[1], p[0]], a))).toMatch(/TOKEN_PEPPER lacks/);
});
type Ring = { readonly id: string; readonly key: Buffer };

test('a key rotation re-encrypts every column with encrypted values', async () => {
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
  // The outbox contains no encrypted values. It only says which copies must still be refreshed.
  const boxes = rows.map(({ name }) => name).filter((name) => !/outbox/.test(name));
  expect(boxes).toEqual(known.sort());
});

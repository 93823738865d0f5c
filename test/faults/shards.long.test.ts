/**
 * Tests an installation with several databases: killed flushers, an unavailable shard, and a backup restored beside the
 * original.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { contentOf, elsewhere } from '../backup/installation.js';
import { petrel } from '../support/command.js';
import { freshDatabase, freshRedis } from '../support/servers.js';
import { itemsOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { ownPostgres, type Restartable } from './backends.js';
import { amount, atMost, type Goal, report } from './report.js';

const partitions = 8;
const keys = makeKeys(partitions);
const folder = mkdtempSync(join(tmpdir(), 'petrel-shards-'));

let server: Restartable;
let near: { readonly url: string; drop(): Promise<void> };
let urls: readonly [string, string];
let service: Service;
let owner: TestUser;
let bots: TestBot[];
const ledger = new Map<number, Set<string>>();

const shardOf = (bot: TestBot) => 1 + (keys.partitions.of(bot.id) % 2);
const botIn = (shard: number) => bots.find((bot) => shardOf(bot) === shard) as TestBot;

async function send(bot: TestBot, text: string): Promise<number> {
  const { status } = await service.bot(bot, 'sendMessage', { chat_id: owner.id, text });
  if (status === 200) ledger.set(bot.id, (ledger.get(bot.id) ?? new Set()).add(text));
  return status;
}

async function count(url: string, sql: string, ...values: unknown[]): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return Number((await client.query(sql, values)).rows[0].count);
  } finally {
    await client.end();
  }
}

const stored = (bot: TestBot) =>
  count(
    urls[shardOf(bot) - 1] as string,
    'select count(*) from messages where chat_id = $1 and record is not null',
    bot.id,
  );

/** Waits until Postgres has every acknowledged message. Each chat also has one more message, which opened the chat. */
async function drained(): Promise<void> {
  for (const bot of bots)
    await expect
      .poll(() => stored(bot), { timeout: 60_000, interval: 200 })
      .toBe((ledger.get(bot.id)?.size ?? 0) + 1);
}

const acknowledgedTexts = () => [...ledger.values()].reduce((sum, { size }) => sum + size, 0);
const seconds = (since: number) => Math.round((performance.now() - since) / 100) / 10;

/**
 * Counts wrong texts of two kinds: texts that people read but that are not in the ledger, and texts in the ledger that
 * people did not read exactly once.
 */
async function lost(of: Service = service): Promise<Goal> {
  let wrong = 0;
  for (const bot of bots) {
    const found = await readTexts(of, bot);
    const own = ledger.get(bot.id) ?? new Set();
    wrong += [...own].filter((text) => !found.includes(text)).length;
    wrong += found.length - new Set(found).size + found.filter((text) => !own.has(text)).length;
  }
  return atMost('lost, doubled or invented', wrong, 0);
}

async function readTexts(of: Service, bot: TestBot): Promise<string[]> {
  const found: string[] = [];
  for (let before = ''; ; ) {
    const page = await itemsOf(of.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=100${before}`));
    found.push(...page.map(({ text }: { text?: string }) => text ?? ''));
    if (page.length < 100) return found.filter((text) => text.startsWith('m '));
    before = `&cursor=${page.at(-1).message_id}`;
  }
}

async function readAll(of: Service): Promise<void> {
  expect(await lost(of)).toMatchObject({ figure: 0 });
}

beforeAll(async () => {
  [server, near] = await Promise.all([ownPostgres(), freshDatabase()]);
  urls = [near.url, server.url];
  const [redis, database] = await Promise.all([freshRedis(), freshDatabase()]);
  const extraEnv = {
    PARTITIONS: String(partitions),
    DATABASE_SHARDS: `1=${urls[0]},2=${urls[1]}`,
    HOT_TTL_MS: '60000',
  };
  service = await startService({ redis, database, extraEnv, divided: true });
  owner = await service.newUser('olga');
  bots = [];
  for (let i = 0; i < 6; i++) bots.push(await service.newBot(owner, 'b'));
  for (const bot of bots) await service.openChat(owner, bot);
}, 300_000);
afterAll(async () => {
  await service?.stop();
  await near?.drop();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('a new installation stores no messages in the control database', async () => {
  for (const bot of bots) for (let i = 0; i < 5; i++) expect(await send(bot, `m ${i}`)).toBe(200);
  await drained();
  expect(botIn(1)).toBeDefined();
  expect(botIn(2)).toBeDefined();
  expect(await count(service.databaseUrl, 'select count(*) from messages')).toBe(0);
  for (const url of urls) expect(await count(url, 'select count(*) from bots')).toBe(0);
  const { out, code } = await petrel(service.env, 'doctor');
  expect(out).toMatch(/shard 1 .* 4 partitions[\s\S]*shard 2 .* 4 partitions/);
  expect(code, out).toBe(0);
});

test('a node does not start if the addresses of two shards are swapped', async () => {
  const env = { ...service.env, DATABASE_SHARDS: `1=${urls[1]},2=${urls[0]}` };
  expect(await petrel(env, 'doctor')).toMatchObject({ code: 1, log: expect.stringMatching(/1 is shard 2/) });
  const lacking = { ...service.env, DATABASE_SHARDS: `1=${urls[0]}` };
  expect((await petrel(lacking, 'doctor')).log).toMatch(/is in shard 2, which is missing in DATABASE_SHARDS/);
});

test('no message is lost or stored twice when flushers are killed', async () => {
  const rounds = amount(5, 20);
  for (let round = 0; round < rounds; round++) {
    await Promise.all(
      bots.map(async (bot) => {
        for (let i = 0; i < 10; i++) expect(await send(bot, `m kill ${round} ${i}`)).toBe(200);
      }),
    );
    await service.flush.kill();
    await service.flush.start();
  }
  await drained();
  report(
    'shards',
    `flushers of two databases killed ${rounds} times`,
    { 'calls acknowledged': acknowledgedTexts() },
    [await lost()],
  );
  await readAll(service);
}, 300_000);

test('an unavailable shard delays neither other shards nor calls on hot data', async () => {
  const here = botIn(1);
  // Uses all chats before the outage, because a chat that was unused for a minute is read from its shard again.
  for (const bot of bots) expect(await send(bot, 'm before')).toBe(200);
  await server.halt();
  const awayMs = amount(10_000, 60_000);
  const until = performance.now() + awayMs;
  const failed: number[] = [];
  let acknowledged = 0;
  for (let i = 0; performance.now() < until; i++) {
    const answers = await Promise.all(bots.map((bot) => send(bot, `m away ${i}`)));
    failed.push(...answers.filter((status) => status !== 200));
    acknowledged += answers.length;
    await sleep(50);
  }
  await expect.poll(() => stored(here), { timeout: 20_000 }).toBe((ledger.get(here.id)?.size ?? 0) + 1);
  const began = performance.now();
  await server.start();
  await drained();
  report(
    'shards',
    `one of two databases unavailable for ${awayMs / 1_000} s`,
    { 'calls acknowledged meanwhile': acknowledged - failed.length, 'seconds until written': seconds(began) },
    [atMost('failed calls on hot data', failed.length, 0), await lost()],
  );
  expect(failed).toEqual([]);
  await readAll(service);
}, 300_000);

test('if a shard is restored to an earlier time, only its partitions are written again', async () => {
  const incarnations = async (url: string) => {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query('select incarnation from partitions order by partition');
    await client.end();
    return rows.map(({ incarnation }) => incarnation);
  };
  const [data, former] = [join(server.dir, 'postgres', 'data'), join(server.dir, 'former')];
  await drained();
  await server.halt();
  execFileSync('cp', ['-a', data, former]);
  await server.start();
  for (const bot of bots)
    for (let i = 0; i < 10; i++) await expect.poll(() => send(bot, `m later ${i}`)).toBe(200);
  await drained();
  const before = await Promise.all(urls.map(incarnations));
  await server.halt();
  rmSync(data, { recursive: true });
  renameSync(former, data);
  const began = performance.now();
  await server.start();
  // The restored shard lacks the latest messages. The flusher writes them again from Redis.
  await drained();
  report(
    'shards',
    'one of two databases restored to an earlier state',
    { 'seconds until written': seconds(began) },
    [await lost()],
  );
  const [here, back] = (await Promise.all(urls.map(incarnations))) as [number[], number[]];
  expect(here).toEqual(before[0]);
  expect(back.every((incarnation, i) => incarnation > (before[1]?.[i] as number))).toBe(true);
  await readAll(service);
  for (const bot of bots) await expect.poll(() => send(bot, 'm afterwards')).toBe(200);
  await drained();
  const { out } = await petrel(service.env, 'doctor');
  expect(out).toMatch(/Postgres \(shard 2\) lost \d+ committed transactions within the last week/);
}, 180_000);

test('a restored backup that runs beside the original installation has every row of every database', async () => {
  const to = join(folder, 'backup');
  const ran = await petrel(service.env, 'backup', to);
  expect(ran, ran.log).toMatchObject({ code: 0, out: expect.stringMatching(/in 3 databases/) });
  const before = await Promise.all(urls.map(contentOf));
  const [control, redis, ...fresh] = await Promise.all([
    freshDatabase(),
    freshRedis(),
    freshDatabase(),
    freshDatabase(),
  ]);
  try {
    const env = elsewhere(service.env, redis, control.url);
    const wrong = await petrel({ ...env, DATABASE_SHARDS: '' }, 'restore', to);
    expect(wrong.log).toMatch(/has the shards 1, 2, but DATABASE_SHARDS has none/);
    env.DATABASE_SHARDS = fresh.map(({ url }, i) => `${i + 1}=${url}`).join(',');
    const done = await petrel(env, 'restore', '--drill', to);
    expect(done, done.log).toMatchObject({ code: 0 });
    let differing = 0;
    const sharded = ['messages', 'chat_sequences', 'posts', 'delivery_counts', 'partitions'];
    for (const [i, { url }] of fresh.entries()) {
      const content = await contentOf(url);
      for (const table of sharded) {
        expect(content.get(table), table).toEqual(before[i]?.get(table));
        if (JSON.stringify(content.get(table)) !== JSON.stringify(before[i]?.get(table))) differing++;
      }
    }
    report(
      'shards',
      'backup of three databases restored beside the original',
      { messages: acknowledgedTexts() },
      [atMost('tables that differ', differing, 0)],
    );
    const doctor = await petrel(env, 'doctor');
    expect(doctor, doctor.log).toMatchObject({
      out: expect.stringMatching(/shard 2 .* 4 partitions[\s\S]*this is a drill/),
    });
  } finally {
    await redis.stop();
    await Promise.all([control, ...fresh].map((each) => each.drop()));
  }
}, 180_000);

test('after Redis loses all data, a rebuild restores the data from every database', async () => {
  await drained();
  const client = new Redis(service.redis.url);
  await client.flushall();
  client.disconnect();
  const rebuilt = await petrel(service.env, 'redis', 'rebuild');
  expect(rebuilt, rebuilt.log).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      /partitions {3}8 on 1 Redis servers, all open\nlost {9}noticed \S+ in \d+ partitions/,
    ),
  });
  await readAll(service);
  for (const bot of bots) await expect.poll(() => send(bot, 'm after the loss')).toBe(200);
  await drained();
  await readAll(service);
}, 180_000);

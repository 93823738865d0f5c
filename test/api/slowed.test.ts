/**
 * Tests that Petrel slows down an address that has guessed many tokens. Later calls from this address cause so little
 * work that they do not delay other callers.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import pg from 'pg';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { makeToken } from '../../src/rules/token.js';
import { eventually } from '../clients/event_source.js';
import { openMasters, openMonitor } from '../support/cluster.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';

const burst = 5;
const tries = 600;
const guesser = '192.0.2.1';

let service: Service;
let masters: Redis[];
let monitors: Redis[];
let postgres: pg.Client;
let owner: TestUser;
let known: TestBot;
let unknown: TestBot;
/** The commands that Redis received over connections, except the front's lease renewals and status reports. */
let commands: string[] = [];

beforeAll(async () => {
  // Starts no flusher and no delivery worker, so that the commands counted in Redis and Postgres are those of the
  // front.
  service = await startService({
    ...{ flushing: false, delivering: false },
    extraEnv: {
      GUESSES_BURST: String(burst),
      GUESSES_PER_MINUTE: '1',
      TRUSTED_PROXIES: '127.0.0.0/8',
    },
  });
  owner = await service.newUser('owner');
  known = await service.newBot(owner, 'known');
  unknown = await service.newBot(owner, 'unknown');
  await resultOf(service.bot(known, 'getMe'));
  postgres = new pg.Client(service.databaseUrl);
  await postgres.connect();
  masters = openMasters(service.redis);
  monitors = await Promise.all(masters.map(openMonitor));
  for (const monitor of monitors)
    monitor.on('monitor', (_time, args: string[], source: string) => {
      const own = args.some((arg) => /:(auth_nodes|nodes|figures)$/.test(arg));
      if (source !== 'lua' && !own && /^(evalsha|eval|get|hgetall|hmget|set)$/i.test(args[0] ?? ''))
        commands.push(args[0] ?? '');
    });
});
afterAll(async () => {
  for (const client of [...(monitors ?? []), ...(masters ?? [])]) client.disconnect();
  await postgres?.end();
  await service?.stop();
});

async function from(path: string, init: { bearer?: string; method?: 'POST'; body?: Buffer } = {}) {
  const { bearer, method = 'GET', body = null } = init;
  const headers = { 'x-forwarded-for': guesser, ...(bearer ? { authorization: `Bearer ${bearer}` } : {}) };
  const answer = await request(`${service.fronts[0].url}${path}`, { method, headers, body });
  await answer.body.dump();
  return answer.statusCode;
}

/** The last id used in a made-up token. No account has such an id, so no cache contains it. */
let madeUp = 900_000_000;
const guesses = [
  () => from(`/bot${makeToken('bot', ++madeUp, randomBytes(32))}/getMe`),
  () => from('/api/me', { bearer: makeToken('user', ++madeUp, randomBytes(32)) }),
  () => from(`/file/bot${makeToken('bot', ++madeUp, randomBytes(32))}/photos/1`),
  () => from('/botmalformed/getMe'),
  () =>
    from(`/bot${makeToken('bot', ++madeUp, randomBytes(32))}/sendMessage`, {
      method: 'POST',
      body: Buffer.alloc(10_000, ' '),
    }),
] as const;

async function transactions(): Promise<number> {
  const sql = 'select xact_commit::int as n from pg_stat_database where datname = current_database()';
  return (await postgres.query<{ n: number }>(sql)).rows[0]?.n ?? 0;
}

test('while an address is slowed down, made-up tokens are refused without a look-up, and valid tokens still work', async () => {
  for (let n = 0; n < 4 * burst; n++) await guesses[n % 2]?.();
  const began = performance.now();
  await sleep(1_500);
  const before = await transactions();
  commands = [];
  const statuses: number[] = [];
  for (let n = 0; n < tries; n += 30) {
    const some = Array.from({ length: 30 }, (_, i) => guesses[i % guesses.length]?.() ?? 0);
    statuses.push(...(await Promise.all(some)));
    // A cached token needs no look-up and does not wait.
    expect(await from(`/bot${known.token}/getMe`)).toBe(200);
  }
  expect(statuses.filter((status) => status !== 429)).toEqual([]);
  // Waits until the statistics of Postgres include the last transactions, which takes about a second.
  await sleep(1_500);
  const lookUps = limits.guess_look_ups_max + (performance.now() - began) / limits.guess_look_up_ms + 1;
  // A look-up takes up to four commands. The background work of the front takes some more.
  expect(commands.length).toBeLessThan(4 * lookUps + 30);
  expect((await transactions()) - before).toBeLessThan(4 * lookUps + 30);
});

test('while an address is slowed down, a front looks up only a limited number of uncached tokens from this address per minute', async () => {
  await eventually(async () => expect(await from(`/bot${unknown.token}/getMe`)).toBe(200));
  // The front has now cached the token, so the token works without a look-up, even after many guesses.
  for (let n = 0; n < 2 * limits.guess_look_ups_max; n++) expect(await guesses[0]()).toBe(429);
  expect(await from(`/bot${unknown.token}/getMe`)).toBe(200);
});

test('Redis keeps one key for each address that is slowed down, and the key expires', async () => {
  const keys = (await Promise.all(masters.map((redis) => redis.keys('*guesses*')))).flat();
  expect(keys.filter((key) => key.endsWith(guesser))).toHaveLength(1);
  const [key = ''] = keys;
  const left = await Promise.all(masters.map((redis) => redis.pttl(key).catch(() => -2)));
  expect(Math.max(...left)).toBeGreaterThan(0);
});

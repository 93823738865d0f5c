import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { checkRedis } from '../../src/redis/check.js';
import { openMonitor } from './cluster.js';
import { freshDatabase, freshRedis } from './servers.js';

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test('each test file gets a separate database, which `drop` removes', async () => {
  const [one, other] = await Promise.all([freshDatabase(), freshDatabase()]);
  await query(one.url, 'create table only_here (id int)');
  await expect(query(other.url, 'select * from only_here')).rejects.toThrow(/does not exist/);
  expect(await query(one.url, 'select * from only_here')).toEqual([]);
  await one.drop();
  await other.drop();
  const left = await query(
    inject('databaseUrl'),
    "select datname from pg_database where datname like 'test\\_%'",
  );
  const names = [one, other].map(({ url }) => new URL(url).pathname.slice(1));
  for (const name of names) expect(left).not.toContainEqual({ datname: name });
});

test('a fresh Redis is separate from the shared one', async () => {
  const redis = await freshRedis();
  expect(redis.url).not.toBe(inject('redisUrl'));
  await checkRedis(redis.url);
  await checkRedis(inject('redisUrl'));
  await redis.stop();
  await expect(checkRedis(redis.url, 1_000)).rejects.toThrow(/ECONNREFUSED/);
});

test('MONITOR can be started while the server runs commands', async () => {
  const client = new Redis(inject('redisUrl'));
  let isDone = false;
  const load = (async () => {
    while (!isDone) await Promise.all(Array.from({ length: 200 }, () => client.ping()));
  })();
  for (let i = 0; i < 10; i++) (await openMonitor(client)).disconnect();
  isDone = true;
  await load;
  client.disconnect();
});

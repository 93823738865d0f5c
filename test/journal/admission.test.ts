/**
 * Tests which Postgres servers a node uses while Redis is unavailable. Only Redis knows whether a server has the latest
 * commits.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { History } from '../../src/journal/history.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { Runner, type ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { migratedDatabase } from '../support/servers.js';
import { ready_ms_max } from '../support/times.js';
import { type RedisServer, startRedis } from './support.js';

let redis: RedisServer;
let connection: RedisConnection;
const pools: Pool[] = [];

beforeAll(async () => {
  redis = await startRedis();
  connection = new RedisConnection({ url: redis.url, name: 'admission' });
});
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.close()));
  await connection?.close();
  await redis?.remove();
});

const own = statement('admission_own', 'select pg_backend_pid() as pid');
const others = statement(
  'admission_others',
  'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()',
);

test('while Redis is unavailable, a node connects only to Postgres servers that it has already checked', async () => {
  const runner: ScriptRunner = new Runner({
    connection,
    recover: async () => undefined,
    reconnectMsMax: 300,
  });
  const [first, second] = [(await migratedDatabase()).url, (await migratedDatabase()).url];
  const history = new History({ url: first, keys: makeKeys(4), connection, runner: () => runner });
  const open = (url: string, name: string) => {
    const pool = createPool({ url, max: 2, name, guard: history });
    pools.push(pool);
    return pool;
  };
  await connection.ready(ready_ms_max);
  const pool = open(first, 'first');
  const before = (await pool.query<{ pid: number }>(own)).rows[0]?.pid;

  await redis.stop();
  await expect.poll(() => connection.runId()).toBeNull();
  await pool.recheck();
  expect((await pool.query<{ pid: number }>(own)).rows[0]?.pid).toBe(before);
  const alone = createPool({ url: first, max: 1, name: 'alone' });
  pools.push(alone);
  await alone.query(others, ['petrel-first']);
  await expect
    .poll(() => pool.query<{ pid: number }>(own).then(({ rows }) => rows[0]?.pid ?? before))
    .not.toBe(before);
  await expect(open(second, 'second').query(own)).rejects.toMatchObject({ kind: 'unavailable' });

  await redis.start();
  await connection.ready(ready_ms_max);
  await pool.query(own);
});

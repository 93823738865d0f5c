/**
 * Tests two Postgres servers with a common past: a server that was replaced, and the current server. Nodes use the
 * current server and refuse the replaced server. In these tests, the two servers are two databases.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ApiError } from '../../src/errors.js';
import { History } from '../../src/journal/history.js';
import { createPool, type Pool } from '../../src/postgres/pool.js';
import { asDatabase, type Database } from '../../src/postgres/sql.js';
import type { ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { ask } from '../support/postgres_pair.js';
import { migratedDatabase } from '../support/servers.js';
import { type Node, openNode, type RedisServer, startRedis } from './support.js';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis?.remove();
});

/** A process that uses a database. `away` disconnects it from Redis. */
interface Process {
  readonly db: Database;
  readonly pool: Pool;
  readonly history: History;
  away: boolean;
  readonly found: string[];
}

let node: Node;
let pools: Pool[];
let before: string;
let after: string;

beforeEach(async () => {
  before = (await migratedDatabase()).url;
  node = await openNode(redis.url, before);
  await node.connection.client.flushall();
  pools = [];
  await ask(before, "insert into admin_tokens (name, fingerprint) values ('ada', 'a'), ('bob', 'b')");
  await node.pool.close();
  after = `${before}_after`;
});
afterEach(async () => {
  await Promise.all(pools.map((pool) => pool.close()));
  await node.connection.close();
});

async function branch(): Promise<void> {
  const name = new URL(before).pathname.slice(1);
  const server = before.replace(`/${name}`, '/petrel');
  await ask(
    server,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
  );
  await ask(server, `create database ${new URL(after).pathname.slice(1)} template ${name}`);
}

function start(url: string): Process {
  const found: string[] = [];
  const runner: Pick<ScriptRunner, 'call'> = {
    call(...args) {
      if (made.away) throw new ApiError('unavailable', { retry_after: 1 });
      return node.runner.call(...args);
    },
  };
  const history = new History({
    ...{ url, keys: node.keys, connection: node.connection, runner: () => runner },
    onWentBack: ({ revoked }) => found.push(`went back, ${revoked} revoked`),
    onReplaced: () => found.push('replaced'),
  });
  const pool = createPool({ url, max: 2, name: 'test', guard: history, onError: () => {} });
  pools.push(pool);
  const made = { db: asDatabase(pool, history), pool, history, away: false, found };
  return made;
}

const touch = ({ db }: Process) =>
  db.transaction((sql) =>
    sql.query(
      "insert into installation (name, value) values ('touched', '') on conflict (name) do update set value = excluded.value",
    ),
  );
const revoke = ({ db }: Process, name: string) =>
  db.transaction((sql) => sql.query('delete from admin_tokens where name = $1', [name]));
const names = async (url: string) =>
  (await ask<{ name: string }>(url, 'select name from admin_tokens order by 1')).map(({ name }) => name);
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (error) => (error as ApiError).kind,
  );

it('Petrel refuses a commit on an open connection to a Postgres server that was replaced', async () => {
  const former = start(before);
  await touch(former);
  await branch();
  await former.db.query('select 1').catch(() => {});
  await former.db.query('select 1');
  const present = start(after);
  await present.db.query('select 1');
  expect(await refusal(revoke(former, 'ada'))).toBe('unavailable');
  expect(former.found).toContain('replaced');
  await expect(former.pool.recheck()).rejects.toThrow();
  expect(await refusal(former.db.query('select 1'))).toBe('unavailable');
  expect(present.found).toEqual([]);
});

it('a revocation that was committed only on the replaced Postgres server is committed again on the current server', async () => {
  const former = start(before);
  await touch(former);
  await branch();
  await former.db.query('select 1').catch(() => {});
  await former.db.query('select 1');
  former.away = true;
  // The replaced server commits the revocation, but no other process knows about it.
  await revoke(former, 'ada');
  const present = start(after);
  await present.db.query('select 1');
  // Makes changes on the current server until its mark counters have reached those of the replaced server.
  for (let i = 0; i < 200; i++) await touch(present);
  expect(await names(after)).toEqual(['ada', 'bob']);

  former.away = false;
  await expect(former.pool.recheck()).rejects.toThrow();
  await present.pool.recheck();
  expect(await names(after)).toEqual(['bob']);
  expect(present.found).toEqual(['went back, 1 revoked']);
});

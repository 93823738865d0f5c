/**
 * Tests that no SQL statement uses the tables of several shards, or uses control tables together with sharded tables.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { prepareBatch, writeBatch } from '../../src/journal/write.js';
import { limits } from '../../src/limits.js';
import { createPool, isUnavailable, type Pool, statement } from '../../src/postgres/pool.js';
import { partitionSql } from '../../src/postgres/shard_copy.js';
import {
  awaitEpoch,
  byShard,
  changeMap,
  followShards,
  joinMap,
  loadMap,
  pageOfAll,
  type Shard,
  shardedTables,
} from '../../src/postgres/shards.js';
import { asDatabase, type Sql } from '../../src/postgres/sql.js';
import { layPartitions } from '../../src/store/core/partitions.js';
import { migratedDatabase } from '../support/servers.js';

const src = fileURLToPath(new URL('../../src', import.meta.url));

let database: { readonly url: string; drop(): Promise<void> };
let client: pg.Client;
let pool: Pool;
let controlTables: string[];
beforeAll(async () => {
  database = await migratedDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  pool = createPool({ url: database.url, max: 2, name: 'test' });
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  // These tables exist separately in every database, so they count neither as control tables nor as sharded tables.
  const everywhere = ['control_marks', 'control_requests', 'installation', 'schema_migrations'];
  controlTables = rows
    .map(({ name }) => name)
    .filter((name) => !(name in shardedTables) && !everywhere.includes(name));
});
afterAll(async () => {
  await client?.end();
  await pool?.close();
  await database?.drop();
});

interface Text {
  readonly file: string;
  readonly sql: string;
}

function statements(): Text[] {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('web/'),
  );
  const found: Text[] = [];
  for (const file of files) {
    const text = readFileSync(`${src}/${file}`, 'utf8');
    for (const [, , sql = ''] of text.matchAll(
      /(['"`])\s*((?:select|insert|update|delete|with|truncate)\s(?:(?!\1)[\s\S])*)\1/g,
    ))
      found.push({ file, sql });
  }
  return found;
}

const names = (sql: string, table: string) =>
  new RegExp(`\\b(from|into|update|join|table|exists \\(select from)\\s+${table}(_default)?\\b`).test(sql);
const tablesOf = (sql: string, tables: readonly string[]) => tables.filter((table) => names(sql, table));

test('no SQL statement joins control tables with sharded tables', () => {
  const all = statements();
  expect(all.length).toBeGreaterThan(200);
  const mixed = all.filter(
    ({ sql }) =>
      tablesOf(sql, controlTables).length > 0 && tablesOf(sql, Object.keys(shardedTables)).length > 0,
  );
  expect(mixed).toEqual([]);
});

/**
 * For each file, the patterns of the statements that may read a whole shard instead of one partition. These statements
 * ignore rows that no longer belong to the shard.
 */
const wholeShard: Readonly<Record<string, RegExp>> = {
  'journal/purge.ts': /limit \$\{chunkRowsMax\}/,
  'postgres/messages/retention.ts': /from chat_sequences\s+where \(chat_id, user_id\) > /,
  'postgres/bots/ranking.ts': /limit \$\{/,
  'postgres/webhooks/dead_updates.ts': /from webhook_replays\s+where created_at < /,
  'postgres/shard_copy.ts': /from messages group by 1/,
  'postgres/messages/history.ts': /rewrite_after|left_at/,
};

test('each SQL statement on a sharded table names the partition, or an id that determines the partition', () => {
  const sharded = statements().filter(({ sql }) => tablesOf(sql, Object.keys(shardedTables)).length > 0);
  expect(sharded.length).toBeGreaterThan(35);
  const loose = sharded.filter(({ file, sql }) => {
    const columns = new Set(tablesOf(sql, Object.keys(shardedTables)).map((table) => shardedTables[table]));
    const named = [...columns].every((column) =>
      new RegExp(`\\b${column} (=|<> all|= any)|\\(([a-z_]+, )*${column}[,)]|unnest\\(.*\\(${column}`).test(
        sql,
      ),
    );
    return !named && !wholeShard[file]?.test(sql);
  });
  expect(loose).toEqual([]);
});

test('no unique key covers rows of several partitions', async () => {
  const { rows } = await client.query<{ table: string; columns: string[] }>(
    `select i.indrelid::regclass::text as table,
       array(select a.attname::text from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any(i.indkey)) as columns
       from pg_index i join pg_class c on c.oid = i.indrelid
      where i.indisunique and c.relnamespace = 'public'::regnamespace and not c.relispartition`,
  );
  const spanning = rows.filter(({ table, columns }) => {
    const column = shardedTables[table];
    return column !== undefined && !columns.includes(column);
  });
  expect(rows.filter(({ table }) => table in shardedTables).length).toBeGreaterThan(10);
  expect(spanning).toEqual([]);
});

test('the primary key of each sharded table includes the partition, or an id that determines the partition', async () => {
  const { rows } = await client.query<{ table: string; columns: string[] }>(
    `select i.indrelid::regclass::text as table,
       array(select a.attname::text from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any(i.indkey)) as columns
       from pg_index i where i.indisprimary and i.indrelid = any($1::regclass[])`,
    [Object.keys(shardedTables)],
  );
  expect(rows.length).toBe(Object.keys(shardedTables).length);
  for (const { table, columns } of rows) expect(columns, table).toContain(shardedTables[table]);
});

test('Postgres and the nodes compute the same partition for an id', async () => {
  const edges = [0, 1, -1, 2 ** 32, 2 ** 32 - 1, -(2 ** 32), limits.id_max, -limits.id_max];
  const random = Array.from({ length: 2_000 }, () => Math.floor((Math.random() - 0.5) * limits.id_max * 2));
  for (const count of [1, 3, 8, 64, 1_000]) {
    const { rows } = await client.query<{ id: string; partition: number }>(
      `select id, ${partitionSql('id', count)}::int as partition from unnest($1::bigint[]) as t (id)`,
      [[...edges, ...random]],
    );
    const { of } = layPartitions(count);
    expect(rows.filter(({ id, partition }) => of(Number(id)) !== partition)).toEqual([]);
  }
});

test('no foreign key refers to or from a sharded table', async () => {
  const { rows } = await client.query<{ child: string; parent: string }>(
    "select conrelid::regclass::text as child, confrelid::regclass::text as parent from pg_constraint where contype = 'f'",
  );
  expect(rows.length).toBeGreaterThan(5);
  expect(rows.filter(({ child, parent }) => child in shardedTables || parent in shardedTables)).toEqual([]);
});

test('a database refuses rows of a partition that has moved away, even from a flusher with an older map', async () => {
  const entry = {
    partition: 2,
    version: 2 ** 40 + 1,
    entity: 'msg:-7:1',
    image: Buffer.from('x'),
    state: '',
  };
  const batch = prepareBatch(
    [{ partition: 2, entries: [entry], last: entry.version, whole: true }],
    new Map(),
  );
  const never = () => expect.unreachable();
  await client.query('insert into partitions (partition, left_at) values (2, now())');
  await expect(writeBatch(pool, batch, never)).rejects.toMatchObject({ code: 'PTL02' });
  expect(isUnavailable(await writeBatch(pool, batch, never).catch((error) => error))).toBe(true);
  expect((await client.query('select from messages')).rowCount).toBe(0);
  await client.query('update partitions set left_at = null');
  await writeBatch(pool, batch, never);
  expect((await client.query('select from messages')).rowCount).toBe(1);
});

/** Runs `call`, which waits for a lock. Meanwhile, moves partition 5 and deletes one of its rows. */
async function movedDuring<T>(call: () => Promise<T>): Promise<PromiseSettledResult<T>> {
  await client.query('begin');
  await client.query('lock table chat_pins in access exclusive mode');
  const called = Promise.allSettled([call()]);
  try {
    await expect
      .poll(
        async () =>
          (await pool.query(statement('', 'select from pg_locks where not granted and relation is not null')))
            .count,
      )
      .toBeGreaterThan(0);
    await client.query('update partitions set left_at = now(), outdated = true where partition = 5');
    await client.query('delete from chat_pins where chat_id = 5 and user_id = 3');
  } finally {
    await client.query('commit');
  }
  return (await called)[0];
}

describe('statements on the rows of a moved partition fail', () => {
  const refused = { status: 'rejected', reason: { kind: 'unavailable' } };
  const pins = 'select user_id from chat_pins where chat_id = $1 order by user_id desc';
  const users = (sql: Sql) => sql.query<{ user_id: number }>(pins, [5]);
  beforeEach(async () => {
    await client.query('insert into partitions (partition) values (4), (5)');
    await client.query(
      "insert into chat_pins (chat_id, user_id, version, record) select 5, u, 1, 'x' from generate_series(1, 3) u",
    );
  });
  afterEach(() => client.query('truncate partitions, chat_pins'));

  test('a read fails if its partition moves while the read waits', async () => {
    const db = asDatabase(pool).whileCurrent([4, 5]);
    expect(await users(db)).toEqual([3, 2, 1].map((user_id) => ({ user_id })));
    expect(await movedDuring(() => users(db))).toMatchObject(refused);
    expect(await users(asDatabase(pool).whileCurrent([4]))).toHaveLength(2);
  });

  test('a write changes nothing if its partition moves while the write waits', async () => {
    const db = asDatabase(pool).whileCurrent([4, 5]);
    await db.query('update chat_pins set version = 2 where chat_id = 5');
    const change = () => db.query('update chat_pins set version = 3 where chat_id = 5');
    expect(await movedDuring(change)).toMatchObject(refused);
    expect((await client.query('select version from chat_pins')).rows).toEqual([
      { version: '2' },
      { version: '2' },
    ]);
  });

  test('a read of rows and the check of their partition are one statement', async () => {
    const once: Pool = {
      ...pool,
      batch: () => expect.unreachable(),
      transaction: () => expect.unreachable(),
    };
    expect(await users(asDatabase(once).whileCurrent([4, 5]))).toHaveLength(3);
  });
});

test('a node does not trust a shard map that may be outdated', async () => {
  const errors: string[] = [];
  const db = asDatabase(pool);
  const all = [0, 1].map((id) => ({ id, url: '', pool, db }));
  const at = performance.now();
  const shards = followShards({
    ...{ all, partitions: 4, map: await loadMap(pool), at },
    onError: ({ message }) => void errors.push(message),
  });
  try {
    expect([shards.epoch(), shards.of(3).id]).toEqual([0, 0]);
    await changeMap(pool, [
      { partition: 1, shard: 1, paused: true },
      { partition: 2, shard: 1, paused: false },
      { partition: 3, shard: 7, paused: false },
    ]);
    await shards.look();
    expect(shards.epoch()).toBe(1);
    expect([0, 1, 2].map((partition) => shards.of(partition).id)).toEqual([0, 1, 1]);
    expect([0, 1, 2].map(shards.isPaused)).toEqual([false, true, false]);
    expect(all.map(shards.owned)).toEqual([[0], [1, 2]]);
    expect(() => shards.of(3)).toThrow('Service Unavailable');
    expect(errors).toEqual(['DATABASE_SHARDS lacks 7, where partitions lie']);
    expect([...byShard(shards, [0, 1, 2], (each) => each)].map(([{ id }, own]) => [id, own])).toEqual([
      [0, [0]],
      [1, [1, 2]],
    ]);
    const page = await pageOfAll(
      shards,
      async (_, own) => own,
      (a, b) => a - b,
      2,
    );
    expect(page).toEqual([0, 1]);
  } finally {
    await shards.stop();
  }
  const old = followShards({
    ...{ all, partitions: 3, map: await loadMap(pool), at: performance.now() - 60_000 },
    onError: () => undefined,
  });
  await old.stop();
  expect(() => old.of(0)).toThrow('Service Unavailable');
});

test('a change of the shard map waits until no process trusts the previous map', async () => {
  const db = asDatabase(pool);
  const all = [0, 1].map((id) => ({ id, url: '', pool, db })) as [Shard, Shard];
  await joinMap(all, 'looks');
  const [map, at] = [await loadMap(pool), performance.now()];
  const shards = followShards({
    ...{ all, partitions: 4, map, at, node: 'looks' },
    onError: () => undefined,
  });
  try {
    await shards.look();
    const epoch = await changeMap(pool, []);
    const began = performance.now();
    await awaitEpoch(pool, epoch);
    expect(shards.epoch()).toBe(epoch);
    // This process reads the shard map once a second. Otherwise the change would wait until the process no longer
    // trusts its copy of the map.
    expect(performance.now() - began).toBeLessThan(limits.shard_map_age_ms_max);
    // Another process has joined, but never reads the shard map.
    await joinMap(all, 'silent');
    const later = performance.now();
    await awaitEpoch(pool, epoch);
    expect(performance.now() - later).toBeGreaterThan(limits.shard_map_age_ms_max);
    expect((await client.query('select node, epoch, shards from shard_nodes')).rows).toEqual([
      { node: 'looks', epoch, shards: [0, 1] },
    ]);
  } finally {
    await shards.stop();
  }
  expect((await client.query('select from shard_nodes')).rowCount).toBe(0);
});

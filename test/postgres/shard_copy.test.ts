/**
 * Tests the copying of partitions between two databases: which process may change a copy, and which rows the target
 * must keep during the copy.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { purgeTombstones } from '../../src/journal/purge.js';
import { day_ms, dropSpan, readSpans } from '../../src/postgres/day_partitions.js';
import { createPool, statement } from '../../src/postgres/pool.js';
import * as copy from '../../src/postgres/shard_copy.js';
import type { Shard } from '../../src/postgres/shards.js';
import { appliedOnce, asDatabase } from '../../src/postgres/sql.js';
import { type PostgresServer, startPostgres } from '../journal/support.js';

let server: PostgresServer;
let source: Shard;
let target: Shard;

async function open(id: number): Promise<Shard> {
  const url = await server.database(`shard_${id}`);
  const pool = createPool({ url, max: 4, name: 'test' });
  return { id, url, pool, db: asDatabase(pool) };
}

/**
 * Describes a move of partitions from shard 1 to shard 2. The process `runner` makes the move. By default, only
 * partition 0 moves.
 */
const shareOf = (runner: string, partitions: readonly number[] = [0]) =>
  copy.shareOf({
    ...{ installation: '00000000-0000-0000-0000-000000000000', source: 1, target: 2 },
    ...{ partitions, count: 1, runner },
  });

async function claim(share: copy.Share): Promise<void> {
  await copy.claimShard(source, share);
  await copy.claimShard(target, share);
}

async function copyAll(share: copy.Share): Promise<void> {
  await copy.beginCopy(source, target, share, copy.conninfoOf(source.url));
  await expect
    .poll(
      async () => {
        const { tables, ready } = await copy.copyState(target, share);
        return tables > 0 && tables === ready;
      },
      { timeout: 60_000 },
    )
    .toBe(true);
}

const marksOf = ({ db }: Shard) =>
  db.query<{ away: boolean; outdated: boolean }>(
    'select left_at is not null as away, outdated from partitions where partition = 0',
  );

const pin = (version: number, record: string | null, days = 0) =>
  source.db.query(
    `insert into chat_pins (chat_id, user_id, version, record, deleted_at)
     values (7, 5, $1, $2::text::bytea, case when $2 is null then now() - $3::int * interval '1 day' end)
     on conflict (chat_id, user_id) do update set version = excluded.version, record = excluded.record, deleted_at = excluded.deleted_at`,
    [version, record, days],
  );
const pinsOf = ({ db }: Shard) => db.query<{ version: number }>('select version from chat_pins');

beforeAll(async () => {
  server = await startPostgres();
  const first = createPool({ url: await server.emptyDatabase('first'), max: 1, name: 'test' });
  await first.query(statement('', "alter system set wal_level = 'logical'"));
  await first.close();
  await server.stop();
  await server.start();
  [source, target] = [await open(1), await open(2)];
}, 60_000);
afterAll(async () => {
  await Promise.all([source?.pool.close(), target?.pool.close()]);
  await server?.remove();
});

test('after another process has taken over the move of a partition, the previous process changes nothing', async () => {
  const [former, present] = [shareOf('former'), shareOf('present')];
  await claim(former);
  await copy.markAway(source, former);
  await claim(present);
  await copy.markPresent(source, present);
  await source.db.query("insert into posts (partition, number, version, record) values (0, 1, 1, 'x')");
  const changes: ReadonlyArray<readonly [string, () => Promise<unknown>]> = [
    ['markAway', () => copy.markAway(source, former)],
    ['markOutdated', () => copy.markOutdated(source, former)],
    ['markPresent', () => copy.markPresent(source, former)],
    ['fenceRows', () => copy.fenceRows(source, former)],
    ['beginCopy', () => copy.beginCopy(source, target, former, copy.conninfoOf(source.url))],
    ['endCopy', () => copy.endCopy(source, target, former)],
    ['deleteRows', () => copy.deleteRows(source, former)],
    ['bringPartitions', () => copy.bringPartitions(source, target, former)],
  ];
  for (const [name, change] of changes) await expect(change(), name).rejects.toThrow(/has taken over/);
  expect(await marksOf(source)).toEqual([{ away: false, outdated: false }]);
  expect(await marksOf(target)).toEqual([]);
  expect(await source.db.query('select from posts')).toHaveLength(1);
  for (const each of ['pg_publication', 'pg_replication_slots', 'pg_subscription'])
    expect(await source.db.query(`select from ${each}`), each).toEqual([]);
  await source.db.query('delete from posts');
});

test('a call that is repeated after its partition has moved gets the first result and changes nothing', async () => {
  const share = shareOf('repeats');
  await claim(share);
  const call = ({ db }: Shard, name: string) =>
    appliedOnce(db, () => name, 0).transaction(async (sql) => {
      await sql.query("insert into posts (partition, number, version, record) values (0, 1, 1, 'x')");
      return { made: 1 };
    });
  expect(await call(source, 'repeated')).toEqual({ made: 1 });
  // Inserts more call results than one statement copies. Also inserts the result of a call that belongs to no
  // partition.
  await source.db.query(
    "insert into control_requests (request, partition) select 'other ' || n, 0 from generate_series(1, 1500) n",
  );
  await source.db.query("insert into control_requests (request) values ('of control records')");
  for (let i = 0; i < 2; i++) await copy.bringPartitions(source, target, share);
  expect(await call(target, 'repeated')).toEqual({ made: 1 });
  expect(await target.db.query('select from posts')).toEqual([]);
  expect(await target.db.query('select from control_requests')).toHaveLength(1_501);
  for (const { db } of [source, target]) await db.query('truncate posts, partitions, control_requests');
});

test('while partitions are copied to a database, the target database purges no rows and drops no daily partitions', async () => {
  const share = shareOf('purges');
  await claim(share);
  // Writes a tombstone that is old enough to be purged, although the source has not purged it yet.
  await pin(1, null, 30);
  const { spans } = await readSpans(target.pool, { table: 'messages' });
  const [span] = spans;
  if (span === undefined) throw new Error('no partition');
  await copyAll(share);
  expect(await pinsOf(target)).toEqual([{ version: 1 }]);
  await purgeTombstones(target.pool);
  expect(await dropSpan(target.pool, 'messages', span)).toBe(false);
  // If the target had purged its copy of the row, Postgres would not replicate this update of the row.
  await pin(2, 'pinned');
  await expect.poll(() => pinsOf(target)).toEqual([{ version: 2 }]);
  await copy.endCopy(source, target, share);
  await pin(3, null, 30);
  await source.db.query("delete from installation where name = 'tombstones_purged_at'");
  await purgeTombstones(source.pool);
  expect(await pinsOf(source)).toEqual([]);
  expect(await dropSpan(target.pool, 'messages', span)).toBe(true);
}, 90_000);

test('the rows of a moved partition are deleted even if a daily partition of messages is dropped at the same time', async () => {
  const share = shareOf('drops');
  await claim(share);
  const day = Math.floor(Date.now() / day_ms);
  const name = 'messages_of_today';
  await source.db.query('drop table if exists messages_default');
  for (const { name } of (await readSpans(source.pool, { table: 'messages' })).spans)
    await source.db.query(`drop table ${name}`);
  await source.db.query(`create table ${name} partition of messages default`);
  await source.db.query(
    `insert into messages (chat_id, user_id, message_id, version, day, record)
     select 7, 5, n, 1, date '1970-01-01' + $1::int, repeat('x', 4000)::bytea from generate_series(1, 10) n`,
    [day],
  );
  await copy.markAway(source, share);
  const { db } = source;
  // The partition is dropped after the tables were listed and before the rows are deleted.
  const dropping: Shard = {
    ...source,
    db: {
      ...db,
      async query<T>(text: string, params?: readonly unknown[]) {
        const rows = await db.query<T>(text, params);
        if (text.includes('pg_partition_tree') && params?.[0] === 'messages')
          await db.query(`drop table ${name}`);
        return rows;
      },
    },
  };
  await expect(copy.deleteRows(dropping, share)).resolves.toBe(0);
}, 60_000);

test('an interrupted copy continues only with the same partitions and the same target server', async () => {
  await source.db.query('create table if not exists messages_rest partition of messages default');
  const share = shareOf('continues');
  await claim(share);
  await copyAll(share);
  expect(await copy.isCopying(source, target, share)).toBe(true);
  expect(await copy.isCopying(source, target, shareOf('continues', [1]))).toBe(false);
  await source.db.query("update installation set value = '1 00000009' where name = 'SHARD_COPY'");
  expect(await copy.isCopying(source, target, share)).toBe(false);
  // `endCopy` must also remove the publication, replication slot and subscription of the abandoned move.
  await copy.endCopy(source, target, shareOf('continues', [1]));
  for (const each of ['pg_publication', 'pg_replication_slots', 'pg_subscription'])
    expect(await source.db.query(`select from ${each}`), each).toEqual([]);
}, 60_000);

/**
 * Statements that move rows of partitions from one database to another by PostgreSQL's logical replication: a
 * publication with row filters and a slot at the source, a subscription at the target. Each step may be repeated.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { addressOf } from '../rules/database_url.js';
import { type Pool, type Queryable, statement } from './pool.js';
import { type Shard, shardedTables } from './shards.js';
import type { Sql } from './sql.js';

/** Tables that are replicated. The rows of `partitions` are copied last, when all other rows are at the target. */
const copied = Object.entries(shardedTables).filter(([table]) => table !== 'partitions');

/**
 * SQL for the partition of an id, equal to `layPartitions`. It uses numbers below 2^63 and only functions that a row
 * filter may call.
 */
export function partitionSql(id: string, count: number): string {
  const folded = `((abs(${id}) & 4294967295) # (abs(${id}) >> 32))`;
  const mixed = `(((((${folded} * 40503) & 65535) << 16) + ${folded} * 31153) & 4294967295)`;
  return `((${mixed} * ${count}) >> 32)`;
}

/**
 * The partitions to move and the total number of partitions, with a name for this move that no other database of
 * these servers uses.
 */
export interface Share {
  readonly name: string;
  readonly partitions: readonly number[];
  readonly count: number;
}

function rowsOf(
  { partitions, count }: Pick<Share, 'partitions' | 'count'>,
  column: string,
  row = '',
): string {
  const partition = column === 'partition' ? `${row}${column}` : partitionSql(`${row}${column}`, count);
  return `${partition} in (${partitions.join(', ')})`;
}

/** Quotes text as an SQL literal, for statements without parameters. */
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A libpq connection string for the primary among the hosts of a URL. */
export function conninfoOf(url: string): string {
  const all = addressOf(url).urls.map((each) => new URL(each));
  const first = all[0] as URL;
  const hosts = all.map(({ hostname, port }) => `${hostname}:${port || '5432'}`).join(',');
  first.searchParams.delete('pooler');
  if (all.length > 1) first.searchParams.set('target_session_attrs', 'primary');
  const user = first.username === '' ? '' : `${first.username}:${first.password}@`;
  return `postgres://${user}${hosts}${first.pathname}${first.search}`;
}

interface SourceState {
  wal_level: string;
  replication: boolean;
  creates: boolean;
  slots_free: number;
  senders: number;
}

interface TargetState {
  subscribes: boolean;
  creates: boolean;
  workers: number;
}

const creates = "has_database_privilege(current_database(), 'CREATE') as creates";

/**
 * Why rows cannot be replicated from one database to the other; null when they can. `name` is the name of a database
 * in the settings.
 */
export async function replicationProblem(
  source: Shard,
  target: Shard,
  name: (id: number) => string,
): Promise<string | null> {
  const [from] = await source.db.query<SourceState>(
    `select current_setting('wal_level') as wal_level, ${creates},
       (select rolreplication or rolsuper from pg_roles where rolname = current_user) as replication,
       current_setting('max_replication_slots')::int - (select count(*)::int from pg_replication_slots) as slots_free,
       current_setting('max_wal_senders')::int as senders`,
  );
  const [to] = await target.db.query<TargetState>(
    `select ${creates}, current_setting('max_logical_replication_workers')::int as workers,
       (select rolsuper from pg_roles where rolname = current_user) or exists (
         select from pg_roles where rolname = 'pg_create_subscription' and pg_has_role(current_user, oid, 'usage')) as subscribes`,
  );
  const at = name(source.id);
  if (from === undefined || to === undefined) return null;
  if (from.wal_level !== 'logical')
    return `${at} has wal_level = ${from.wal_level}: run "alter system set wal_level = 'logical'" there and restart it`;
  if (!from.replication) return `the role of ${at} may not replicate: run "alter role … replication" there`;
  if (!from.creates) return `the role of ${at} may not publish: run "grant create on database … to …" there`;
  // One slot for the changes, and one for the table being copied.
  if (from.slots_free < 2)
    return `${at} has no two replication slots left: raise max_replication_slots there`;
  if (from.senders < 2) return `${at} has max_wal_senders = ${from.senders}: raise it there`;
  const there = name(target.id);
  if (!to.subscribes)
    return `the role of ${there} may not subscribe: run "grant pg_create_subscription to …" there (a superuser before PostgreSQL 16)`;
  if (!to.creates)
    return `the role of ${there} may not subscribe: run "grant create on database … to …" there`;
  if (to.workers < 2)
    return `${there} has max_logical_replication_workers = ${to.workers}: raise it there, and restart it`;
  return null;
}

const publicationExists = 'select from pg_publication where pubname = $1';
const subscriptionOf =
  'select oid::bigint as id from pg_subscription where subname = $1 and subdbid = (select oid from pg_database where datname = current_database())';
const slotOf =
  "select active_pid as pid, coalesce(wal_status, 'lost') as status from pg_replication_slots where slot_name = $1";

const has = async (sql: Sql, text: string, name: string) => (await sql.query(text, [name])).length > 0;

const longWait = statement('slot_wait_long', "select set_config('statement_timeout', '120s', true)");
const createSlot = statement(
  'create_move_slot',
  "select pg_create_logical_replication_slot($1, 'pgoutput') where not exists (select from pg_replication_slots where slot_name = $1)",
);

/**
 * Begins a copy; does nothing if it has begun. `conninfo` is the connection string with which the target reaches the
 * source.
 */
export async function beginCopy(source: Shard, target: Shard, share: Share, conninfo: string): Promise<void> {
  const { name } = share;
  // The slot must not be older than its publication.
  if (!(await has(source.db, publicationExists, name))) {
    const tables = copied.map(([table, column]) => `table ${table} where (${rowsOf(share, column)})`);
    await source.db.query(
      `create publication ${name} for ${tables.join(', ')} with (publish = 'insert, update, delete', publish_via_partition_root = true)`,
    );
  }
  await source.pool.transaction(async (tx) => {
    // Creating the slot waits for every running transaction.
    await tx.query(longWait);
    await tx.query(createSlot, [name]);
  });
  if (await has(target.db, subscriptionOf, name)) return;
  // The slot is created separately: if the subscription did it, it would wait for ever where both databases are on
  // one server.
  await target.db.query(
    `create subscription ${name} connection ${literal(conninfo)} publication ${name} with (create_slot = false, slot_name = ${name})`,
  );
}

/** Whether a copy that was begun can continue. */
export async function isCopying(source: Shard, target: Shard, { name }: Share): Promise<boolean> {
  const [slot] = await source.db.query<{ status: string }>(slotOf, [name]);
  if (slot === undefined || slot.status === 'lost') return false;
  return has(target.db, subscriptionOf, name);
}

export interface CopyState {
  readonly tables: number;
  /** Tables whose initial copy is complete and that receive changes. */
  readonly ready: number;
  /** Number of errors of the subscription since it began; the log of the target has their texts. */
  readonly errors: number;
}

export async function copyState(target: Shard, { name }: Share): Promise<CopyState> {
  const [state] = await target.db.query<CopyState>(
    `select count(*)::int as tables, (count(*) filter (where r.srsubstate = 'r'))::int as ready,
       (select (apply_error_count + sync_error_count)::int from pg_stat_subscription_stats where subname = $1) as errors
       from pg_subscription_rel r join pg_subscription s on s.oid = r.srsubid where s.subname = $1`,
    [name],
  );
  return state ?? { tables: 0, ready: 0, errors: 0 };
}

const writtenTo = statement('wal_written_to', 'select pg_current_wal_insert_lsn()::text as lsn');

/** Position up to which the source has written its log. */
export async function positionOf(source: Pool): Promise<string> {
  const [row] = (await source.query<{ lsn: string }>(writtenTo)).rows;
  return row?.lsn ?? '0/0';
}

/**
 * Bytes of the log before a position that the target has not stored on disk yet. Fails when the slot no longer
 * exists.
 */
export async function lagOf(source: Shard, { name }: Share, position: string): Promise<number> {
  const [row] = await source.db.query<{ bytes: number }>(
    `select greatest(0, pg_wal_lsn_diff($2::pg_lsn, confirmed_flush_lsn))::bigint as bytes
       from pg_replication_slots where slot_name = $1`,
    [name, position],
  );
  if (row === undefined) throw new Error('the replication slot of the copy no longer exists at the source');
  return row.bytes;
}

const lockTimeout = statement('fence_lock_timeout', "set local lock_timeout = '1s'");
const lockTriesMax = 30;

/** Changes a table. Each attempt waits at most a second for its writers, because other sessions queue behind it. */
async function altering(pool: Pool, text: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await pool.transaction(async (tx) => {
        await tx.query(lockTimeout);
        await tx.query(statement('', text));
      });
    } catch (error) {
      if ((error as { code?: string }).code !== '55P03' || tries === lockTriesMax) throw error;
      await sleep(200 + Math.random() * 200);
    }
  }
}

/**
 * Fences partitions: when this returns, the source accepts no rows of them any more, and every accepted row is
 * committed.
 */
export async function fenceRows(source: Pool, share: Share): Promise<void> {
  for (const [table, column] of copied)
    await altering(
      source,
      `create or replace trigger refuse_moved_row before insert or update on ${table} for each row
         when (${rowsOf(share, column, 'new.')}) execute function refuse_moved_row()`,
    );
}

const fencedTables = statement(
  'fenced_tables',
  "select tgrelid::regclass::text as name from pg_trigger where tgname = 'refuse_moved_row' and tgparentid = 0",
);

export async function unfenceRows(source: Pool): Promise<void> {
  const { rows } = await source.query<{ name: string }>(fencedTables);
  for (const { name } of rows) await altering(source, `drop trigger if exists refuse_moved_row on ${name}`);
}

/** Removes the subscription, the slots and the publication, as far as they exist. */
export async function endCopy(source: Shard, target: Shard, { name }: Share): Promise<void> {
  const [subscription] = await target.db.query<{ id: number }>(subscriptionOf, [name]);
  if (subscription !== undefined) {
    // A subscription without slot can be dropped even while the source is unavailable.
    await target.db.query(`alter subscription ${name} disable`);
    await target.db.query(`alter subscription ${name} set (slot_name = none)`);
    await target.db.query(`drop subscription ${name}`);
  }
  // Each table whose copy is incomplete has a slot.
  const ofTables = `pg_${subscription?.id ?? '-'}_sync_%`;
  for (let tries = 1; ; tries++) {
    const left = await source.db.query<{ slot: string; pid: number | null }>(
      `select slot_name as slot, active_pid as pid from pg_replication_slots
        where database = current_database() and (slot_name = $1 or slot_name like $2)`,
      [name, ofTables],
    );
    if (left.length === 0) break;
    for (const { slot, pid } of left) {
      // The sender of a slot runs on for a moment after its reader has disconnected.
      if (pid === null) await source.db.query('select pg_drop_replication_slot($1)', [slot]);
      else if (tries % 20 === 0) await source.db.query('select pg_terminate_backend($1)', [pid]);
    }
    await sleep(100);
  }
  await source.db.query(`drop publication if exists ${name}`);
}

const identities = statement(
  'sharded_identities',
  `select c.relname::text as name, pg_sequence_last_value(s.objid) as last
     from pg_class c join pg_depend s on s.refobjid = c.oid and s.classid = 'pg_class'::regclass and s.deptype in ('a', 'i')
     join pg_class q on q.oid = s.objid and q.relkind = 'S'
    where c.relname = any($1::text[]) and c.relnamespace = 'public'::regnamespace`,
);
const skipIdentity = statement(
  'skip_identity',
  `select setval(pg_get_serial_sequence($1, 'id'), greatest($2::bigint,
     coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass), 1)))`,
);

/** Moves the target's identity sequences past every id that the source has given out. */
export async function skipIdentities(source: Queryable, target: Queryable): Promise<void> {
  const tables = copied.map(([table]) => table);
  const { rows } = await source.query<{ name: string; last: number | null }>(identities, [tables]);
  for (const { name, last } of rows) if (last !== null) await target.query(skipIdentity, [name, last]);
}

/** Pages of a table that one statement reads: 8 MiB. */
const pagesAtOnce = 1_024;

/** The tables that hold the rows of a table: the table itself, or its partitions. */
const leavesOf = (table: string) =>
  `(select oid as relid from pg_class where oid = to_regclass(${table}) and relkind = 'r'
    union all select relid from pg_partition_tree(to_regclass(${table})) where isleaf and relid <> to_regclass(${table}))`;

const leaves = `select i.relid::regclass::text as name, pg_relation_size(i.relid) / current_setting('block_size')::int as pages
  from ${leavesOf('$1::text')} i`;

/**
 * Deletes the rows of these partitions from a database whose own records say that it does not hold them. Makes one
 * pass over its tables, 8 MiB of one at a time. Returns the number of rows.
 */
export async function deleteRows(shard: Shard, share: Share): Promise<number> {
  let deleted = 0;
  for (const [table, column] of copied) {
    for (const { name, pages } of await shard.db.query<{ name: string; pages: number }>(leaves, [table])) {
      for (let page = 0; page < pages; page += pagesAtOnce) {
        deleted += await shard.db.transaction(async (sql) => {
          const away = await sql.query(
            'select from partitions where partition = any($1::int[]) and left_at is not null for share',
            [share.partitions],
          );
          if (away.length < share.partitions.length)
            throw new Error('another process has moved these partitions here');
          const [{ count } = { count: 0 }] = await sql.query<{ count: number }>(
            `with gone as (delete from ${name} where ctid >= $1::text::tid and ctid < $2::text::tid and ${rowsOf(share, column)} returning 1)
             select count(*)::int as count from gone`,
            [`(${page},0)`, `(${page + pagesAtOnce},0)`],
          );
          return count;
        });
      }
    }
  }
  return deleted;
}

/**
 * Records that partitions are not in a database, which then accepts no flush of them. Returns whether it may still
 * have rows of them.
 */
export async function markAway(shard: Shard, partitions: readonly number[]): Promise<boolean> {
  const known = await shard.db.transaction(async (sql) => {
    const found = await sql.query('select from partitions where partition = any($1::int[])', [partitions]);
    await sql.query(
      `insert into partitions as p (partition, left_at) select unnest($1::int[]), now()
       on conflict (partition) do update set left_at = coalesce(p.left_at, excluded.left_at), rewrite_after = null`,
      [partitions],
    );
    return found.length > 0;
  });
  return known;
}

/** Reverts `markAway`: records that partitions are in a database. */
export async function markPresent(shard: Shard, partitions: readonly number[]): Promise<void> {
  await shard.db.transaction((sql) =>
    sql.query('update partitions set left_at = null where partition = any($1::int[])', [partitions]),
  );
}

/** The partitions among these that a database records as its own. */
export async function presentIn(shard: Shard, partitions: readonly number[]): Promise<number[]> {
  const rows = await shard.db.query<{ partition: number }>(
    'select partition from partitions where partition = any($1::int[]) and left_at is null',
    [partitions],
  );
  return rows.map(({ partition }) => partition);
}

/** The partitions among these that were in the database earlier and have left it. */
export async function leftFrom(shard: Shard, partitions: readonly number[]): Promise<number[]> {
  const rows = await shard.db.query<{ partition: number }>(
    'select partition from partitions where partition = any($1::int[]) and left_at is not null',
    [partitions],
  );
  return rows.map(({ partition }) => partition);
}

/** Copies the rows of `partitions`, after which the target has all data of these partitions. */
export async function bringPartitions(
  source: Shard,
  target: Shard,
  partitions: readonly number[],
): Promise<void> {
  const rows = await source.db.query<{ row: object }>(
    'select to_jsonb(p) as row from partitions p where partition = any($1::int[])',
    [partitions],
  );
  await target.db.transaction(async (sql) => {
    await sql.query('delete from partitions where partition = any($1::int[])', [partitions]);
    // A partition that was never used has no row in this table.
    await sql.query(
      `insert into partitions select p.* from unnest($1::int[]) as wanted (partition)
         left join jsonb_array_elements($2::jsonb) r on (r ->> 'partition')::int = wanted.partition
         cross join jsonb_populate_record(
           jsonb_populate_record(null::partitions, '{"incarnation": 0, "run_id": "", "flushed_version": 0}'),
           coalesce(r, '{}') || jsonb_build_object('partition', wanted.partition, 'left_at', null)) p`,
      [partitions, JSON.stringify(rows.map(({ row }) => row))],
    );
  });
}

/** Whether a database that was restored to an earlier state is still being rewritten from Redis. */
export async function isRewriting(shard: Shard, partitions: readonly number[]): Promise<boolean> {
  const rows = await shard.db.query(
    'select from partitions where partition = any($1::int[]) and rewrite_after is not null limit 1',
    [partitions],
  );
  return rows.length > 0;
}

export interface ShardSize {
  readonly bytes: number;
  /** Number of messages, as last estimated by Postgres. */
  readonly messages: number;
}

/** Bytes of these tables with their indexes, and the number of messages. */
export async function sizeOf(shard: Shard, tables: readonly string[]): Promise<ShardSize> {
  const [size] = await shard.db.query<ShardSize>(
    `select coalesce(sum(pg_total_relation_size(i.relid)), 0)::bigint as bytes,
       coalesce(sum(greatest(c.reltuples, 0)) filter (where t.name = 'messages'), 0)::bigint as messages
       from unnest($1::text[]) as t (name) cross join lateral ${leavesOf('t.name')} i join pg_class c on c.oid = i.relid`,
    [tables],
  );
  return size ?? { bytes: 0, messages: 0 };
}

/** Counts the messages by reading all of them. */
export async function countMessages(
  shard: Shard,
  partitions: number,
): Promise<ReadonlyArray<{ readonly partition: number; readonly count: number }>> {
  return shard.pool.transaction(async (tx) => {
    await tx.query(longWait);
    const count = statement(
      '',
      `select ${partitionSql('chat_id', partitions)}::int as partition, count(*) as count from messages group by 1 order by 1`,
    );
    return (await tx.query<{ partition: number; count: number }>(count)).rows;
  });
}

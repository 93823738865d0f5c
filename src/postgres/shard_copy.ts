/**
 * Moves rows of partitions from one database to another with PostgreSQL's logical replication. The source has a
 * publication with row filters and a slot, and the target has a subscription. Each step may be repeated.
 */

import { createHash } from 'node:crypto';
import { type Random, systemRandom } from '../random.js';
import { addressOf } from '../rules/database_url.js';
import { systemTime, type Time } from '../time.js';
import { loadServerState } from './messages/history.js';
import { type Pool, type Queryable, statement } from './pool.js';
import { type Shard, shardedTables } from './shards.js';
import { fragment, plainSql, type Sql } from './sql.js';

/**
 * The tables that are replicated. The table `partitions` is copied separately at the end, when the target has all other
 * rows.
 */
const copied = Object.entries(shardedTables).filter(([table]) => table !== 'partitions');

/**
 * Returns the SQL that computes the partition of an id, with the same result as `layPartitions`. The SQL uses only
 * numbers below 2^63, and only functions that a row filter may call.
 */
export function partitionSql(id: string, count: number): string {
  const folded = `((abs(${id}) & 4294967295) # (abs(${id}) >> 32))`;
  const mixed = `(((((${folded} * 40503) & 65535) << 16) + ${folded} * 31153) & 4294967295)`;
  return `((${mixed} * ${count}) >> 32)`;
}

export interface Share {
  /** The common prefix of the names of this installation's publications, slots and subscriptions. */
  readonly prefix: string;
  /**
   * The name of the publication, the slot and the subscription. It depends on the partitions, the source and the
   * target.
   */
  readonly name: string;
  readonly partitions: readonly number[];
  readonly count: number;
  readonly runner: string;
  readonly time: Time;
  readonly random: Random;
}

export interface ShareOptions extends Pick<Share, 'partitions' | 'count' | 'runner'> {
  readonly installation: string;
  readonly source: number;
  readonly target: number;
  readonly time?: Time;
  readonly random?: Random;
}

export function shareOf(options: ShareOptions): Share {
  const { installation, source, target, partitions, count, runner } = options;
  const { time = systemTime, random = systemRandom } = options;
  const prefix = `petrel_${installation.replaceAll('-', '').slice(0, 12)}_`;
  const which = createHash('sha1').update(partitions.join()).digest('hex').slice(0, 8);
  return { prefix, name: `${prefix}${source}_${target}_${which}`, partitions, count, runner, time, random };
}

const noteInstallation = (sql: Sql, name: string, value: string) => sql.run`
  insert into installation (name, value) values (${name}, ${value})
  on conflict (name) do update set value = excluded.value`;

export const takenOver = () => new Error('another process has taken over this move');

/**
 * Makes a database accept the changes of a move from this process only. A process that was suspended for a while can
 * then not continue a move that another process has taken over.
 */
export const claimShard = (shard: Shard, { runner }: Pick<Share, 'runner'>) =>
  noteInstallation(shard.db, 'SHARD_MOVE', runner);

/** Runs a transaction of the move. Fails if another process has claimed the database. */
function moving<T>(shard: Shard, { runner }: Share, work: (sql: Sql) => Promise<T>): Promise<T> {
  return shard.db.transaction(async (sql) => {
    const claimed = await sql.some`
      select from installation where name = 'SHARD_MOVE' and value = ${runner} for share`;
    if (!claimed) throw takenOver();
    return work(sql);
  });
}

function rowsOf(
  { partitions, count }: Pick<Share, 'partitions' | 'count'>,
  column: string,
  row = '',
): string {
  const partition = column === 'partition' ? `${row}${column}` : partitionSql(`${row}${column}`, count);
  return `${partition} in (${partitions.join(', ')})`;
}

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Builds a libpq connection string that connects to the primary among the hosts of the URL. */
export function conninfoOf(url: string): string {
  const all = addressOf(url).urls.map((each) => new URL(each));
  const first = all[0] as URL;
  const hosts = all.map(({ hostname, port }) => `${hostname}:${port || '5432'}`).join(',');
  first.searchParams.delete('pooler');
  if (all.length > 1) first.searchParams.set('target_session_attrs', 'primary');
  const user = first.username === '' ? '' : `${first.username}:${first.password}@`;
  return `postgres://${user}${hosts}${first.pathname}${first.search}`;
}

const creates = fragment("has_database_privilege(current_database(), 'CREATE') as creates");

/**
 * Returns the reason why rows cannot be replicated from one database to the other, or null if they can. `name` is the
 * name of a database in the settings. `conninfo` is the connection string with which the target connects to the source.
 */
export async function replicationProblem(
  source: Shard,
  target: Shard,
  name: (id: number) => string,
  conninfo: string,
): Promise<string | null> {
  const from = await source.db.one<
    Record<'replication' | 'creates', boolean> &
      Record<'slots_free' | 'senders', number> & { wal_level: string }
  >`
    select current_setting('wal_level') as wal_level, ${creates},
      (select rolreplication or rolsuper from pg_roles where rolname = current_user) as replication,
      current_setting('max_replication_slots')::int - (select count(*)::int from pg_replication_slots)
        as slots_free,
      current_setting('max_wal_senders')::int as senders`;
  const to = await target.db.one<
    Record<'superuser' | 'subscribes' | 'creates', boolean> & Record<'version' | 'workers', number>
  >`
    select ${creates}, current_setting('max_logical_replication_workers')::int as workers,
      current_setting('server_version_num')::int / 10000 as version,
      (select rolsuper from pg_roles where rolname = current_user) as superuser, exists (
        select from pg_roles where rolname = 'pg_create_subscription'
          and pg_has_role(current_user, oid, 'usage')) as subscribes`;
  const at = name(source.id);
  if (from.wal_level !== 'logical')
    return `${at} has wal_level = ${from.wal_level}: run "alter system set wal_level = 'logical'" there and restart it`;
  if (!from.replication) return `the role of ${at} may not replicate: run "alter role … replication" there`;
  if (!from.creates) return `the role of ${at} may not publish: run "grant create on database … to …" there`;
  // A move needs two slots: one for the stream of changes, and one for the initial copy of a table.
  if (from.slots_free < 2)
    return `${at} has no two replication slots left: raise max_replication_slots there`;
  if (from.senders < 2) return `${at} has max_wal_senders = ${from.senders}: raise it there`;
  const there = name(target.id);
  if (!to.superuser && to.version < 16)
    return `the role of ${there} may not subscribe: PostgreSQL ${to.version} allows it to superusers only. Run "alter role … superuser" there until the move has ended`;
  if (!to.superuser && !to.subscribes)
    return `the role of ${there} may not subscribe: run "grant pg_create_subscription to …" there`;
  // Only a superuser may create a subscription whose URL has no password.
  if (!to.superuser && new URL(conninfo).password === '')
    return `the URL of ${at} has no password, which a subscription of the role of ${there} needs: set one, or name a URL by --from`;
  if (!to.creates)
    return `the role of ${there} may not subscribe: run "grant create on database … to …" there`;
  if (to.workers < 2)
    return `${there} has max_logical_replication_workers = ${to.workers}: raise it there, and restart it`;
  return null;
}

const ownSubscriptions = fragment(
  'pg_subscription where subdbid = (select oid from pg_database where datname = current_database())',
);
const isSubscribed = (sql: Sql, name: string) => sql.some`
  select from ${ownSubscriptions} and subname = ${name}`;

const longWait = statement('slot_wait_long', "select set_config('statement_timeout', '120s', true)");
const createSlot = statement(
  'create_move_slot',
  "select pg_create_logical_replication_slot($1, 'pgoutput') where not exists (select from pg_replication_slots where slot_name = $1)",
);

/**
 * Begins a copy. Does nothing if it has already begun. `conninfo` is the connection string with which the target
 * connects to the source.
 */
export async function beginCopy(source: Shard, target: Shard, share: Share, conninfo: string): Promise<void> {
  const { name } = share;
  // Creates the publication before the slot, because a slot must not be older than its publication.
  await moving(source, share, async (sql) => {
    if (await sql.some`select from pg_publication where pubname = ${name}`) return;
    const tables = copied.map(([table, column]) => `table ${table} where (${rowsOf(share, column)})`);
    await sql.run`
      create publication ${fragment(name)} for ${fragment(tables.join(', '))} with
      (publish = 'insert, update, delete', publish_via_partition_root = true)`;
  });
  const history = await historyOf(target);
  await moving(source, share, (sql) => noteInstallation(sql, 'SHARD_COPY', history));
  await source.pool.transaction(async (tx) => {
    // Allows a long wait, because Postgres creates the slot only after every running transaction has ended.
    await tx.query(longWait);
    await tx.query(createSlot, [name]);
  });
  // The slot already exists, because a separate statement creates it. If both databases are on one server, a statement
  // that creates both the subscription and the slot waits forever.
  await moving(target, share, async (sql) => {
    if (await isSubscribed(sql, name)) return;
    await sql.run`
      create subscription ${fragment(name)} connection ${fragment(literal(conninfo))} publication
        ${fragment(name)} with (create_slot = false, slot_name = ${fragment(name)})`;
  });
}

/** Reads the system identifier and the timeline of a server. A promotion changes the timeline. */
const historyOf = async ({ pool }: Shard) => (await loadServerState(pool)).history;

/**
 * Returns whether a copy that was begun can continue. If another server has replaced the target, the copy cannot
 * continue, because the new server may lack rows that the slot does not send again.
 */
export async function isCopying(source: Shard, target: Shard, { name }: Share): Promise<boolean> {
  const status = await source.db.firstValue<string>`
    select coalesce(wal_status, 'lost') from pg_replication_slots where slot_name = ${name}`;
  if (status === undefined || status === 'lost') return false;
  const noted = await source.db.firstValue<string>`
    select value from installation where name = 'SHARD_COPY'`;
  return noted === (await historyOf(target)) && isSubscribed(target.db, name);
}

export interface CopyState {
  readonly tables: number;
  /** The number of tables whose initial copy is complete. These tables receive the changes that the source makes. */
  readonly ready: number;
  /** The number of errors since the subscription began. The target's log contains their texts. */
  readonly errors: number;
}

export async function copyState(target: Shard, { name }: Share): Promise<CopyState> {
  const state = await target.db.first<CopyState>`
    select count(*)::int as tables, (count(*) filter (where r.srsubstate = 'r'))::int as ready,
      (select (apply_error_count + sync_error_count)::int from pg_stat_subscription_stats
        where subname = ${name}) as errors
    from pg_subscription_rel r join pg_subscription s on s.oid = r.srsubid where s.subname = ${name}`;
  return state ?? { tables: 0, ready: 0, errors: 0 };
}

export const positionOf = (source: Pool) => plainSql(source).value<string>`
  select pg_current_wal_insert_lsn()::text`;

/**
 * Returns how many bytes of the source's write-ahead log, up to the given position, are not on the target's disk yet.
 * Fails if the slot no longer exists.
 */
export async function lagOf(source: Shard, { name }: Share, position: string): Promise<number> {
  const bytes = await source.db.firstValue<number>`
    select greatest(0, pg_wal_lsn_diff(${position}::pg_lsn, confirmed_flush_lsn))::bigint as bytes
    from pg_replication_slots where slot_name = ${name}`;
  if (bytes === undefined) throw new Error('the replication slot of the copy no longer exists at the source');
  return bytes;
}

const isLocked = (error: unknown) =>
  ((error as Error).cause as { code?: string } | undefined)?.code === '55P03';
const lockTriesMax = 30;

/**
 * Alters a table. Limits each attempt to one second of waiting for transactions that write to the table, because other
 * sessions wait behind the attempt.
 */
async function altering(shard: Shard, share: Share, text: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await moving(shard, share, async (sql) => {
        await sql.run`set local lock_timeout = '1s'`;
        await sql.query(text);
      });
    } catch (error) {
      if (!isLocked(error) || tries === lockTriesMax) throw error;
      await share.time.sleep(200 + share.random.number() * 200);
    }
  }
}

/**
 * Fences the partitions. After this call, the source accepts no more rows of these partitions, and every row that it
 * accepted before is committed.
 */
export async function fenceRows(source: Shard, share: Share): Promise<void> {
  for (const [table, column] of copied)
    await altering(
      source,
      share,
      `create or replace trigger refuse_moved_row before insert or update on ${table} for each row
         when (${rowsOf(share, column, 'new.')}) execute function refuse_moved_row()`,
    );
}

export async function unfenceRows(source: Shard, share: Share): Promise<void> {
  const fenced = await source.db.column<string>`
    select tgrelid::regclass::text from pg_trigger where tgname = 'refuse_moved_row' and tgparentid = 0`;
  for (const name of fenced)
    await altering(source, share, `drop trigger if exists refuse_moved_row on ${name}`);
}

/**
 * Removes all subscriptions, slots and publications of this installation. After a restore of the control database, they
 * may belong to a move that the control database no longer records.
 */
export async function endCopy(source: Shard, target: Shard, share: Share): Promise<void> {
  const { prefix } = share;
  const subscriptions = await moving(target, share, async (sql) => {
    const found = await sql.rows<{ id: number; name: string }>`
      select oid::bigint as id, subname::text as name from ${ownSubscriptions}
        and starts_with(subname::text, ${prefix})`;
    for (const { name } of found) {
      // Detaches the slot from the subscription first, because a subscription without a slot can be dropped even if the
      // source is unavailable.
      await sql.run`alter subscription ${fragment(name)} disable`;
      await sql.run`alter subscription ${fragment(name)} set (slot_name = none)`;
      await sql.run`drop subscription ${fragment(name)}`;
    }
    return found;
  });
  const publications = await moving(
    source,
    share,
    (sql) => sql.column<string>`
      select pubname::text from pg_publication where starts_with(pubname::text, ${prefix})`,
  );
  // Also removes the slots of single tables. A table has its own slot until its initial copy is complete.
  const ofTables = subscriptions.map(({ id }) => `pg_${id}_sync_%`);
  for (let tries = 1; ; tries++) {
    const left = await source.db.rows<{ slot: string; pid: number | null }>`
      select slot_name as slot, active_pid as pid from pg_replication_slots
      where database = current_database()
        and (starts_with(slot_name, ${prefix}) or slot_name like any(${ofTables}::text[]))`;
    if (left.length === 0) break;
    for (const { slot, pid } of left) {
      // Waits until the slot's WAL sender has ended. The WAL sender still runs for a moment after its reader has
      // disconnected.
      if (pid === null) await source.db.run`select pg_drop_replication_slot(${slot})`;
      else if (tries % 20 === 0) await source.db.run`select pg_terminate_backend(${pid})`;
    }
    await share.time.sleep(100);
  }
  await moving(source, share, async (sql) => {
    for (const name of publications) await sql.run`drop publication if exists ${fragment(name)}`;
  });
}

/** Moves the target's identity sequences past every id that the source has assigned. */
export async function skipIdentities(source: Queryable, target: Queryable): Promise<void> {
  const identities = await plainSql(source).rows<{ name: string; last: number | null }>`
    select c.relname::text as name, pg_sequence_last_value(s.objid) as last
    from pg_class c
    join pg_depend s on s.refobjid = c.oid and s.classid = 'pg_class'::regclass and s.deptype in ('a', 'i')
    join pg_class q on q.oid = s.objid and q.relkind = 'S'
    where c.relname = any(${copied.map(([table]) => table)}::text[])
      and c.relnamespace = 'public'::regnamespace`;
  for (const { name, last } of identities)
    if (last !== null)
      await plainSql(target).run`
        select setval(pg_get_serial_sequence(${name}, 'id'), greatest(${last}::bigint,
          coalesce(pg_sequence_last_value(pg_get_serial_sequence(${name}, 'id')::regclass), 1)))`;
}

const pagesAtOnce = 1_024;

const leavesOf = (table: string) =>
  fragment(`(select oid as relid from pg_class where oid = to_regclass(${table}) and relkind = 'r'
    union all
    select relid from pg_partition_tree(to_regclass(${table})) where isleaf and relid <> to_regclass(${table}))`);

/**
 * Deletes the rows of these partitions from a database. The database must already have recorded that these partitions
 * have left it. Reads each table once, 8 MiB per statement. Returns the number of deleted rows.
 */
export async function deleteRows(shard: Shard, share: Share): Promise<number> {
  let deleted = 0;
  for (const [table, column] of copied) {
    const leaves = await shard.db.query<{ name: string; pages: number }>(
      `select i.relid::regclass::text as name, pg_relation_size(i.relid) / current_setting('block_size')::int as pages
         from ${leavesOf('$1::text')} i`,
      [table],
    );
    for (const { name, pages } of leaves) {
      for (let page = 0; page < pages; page += pagesAtOnce) {
        const count = await moving(shard, share, async (sql) => {
          const away = await sql.rows`
            select from partitions where partition = any(${share.partitions}::int[]) and left_at is not null
            for share`;
          if (away.length < share.partitions.length)
            throw new Error('another process has moved these partitions here');
          return sql.value<number>`
            with gone as (
              delete from ${fragment(name)} where ctid >= ${`(${page},0)`}::text::tid
                and ctid < ${`(${page + pagesAtOnce},0)`}::text::tid and ${fragment(rowsOf(share, column))}
              returning 1)
            select count(*)::int from gone`;
        }).catch((error) => {
          // Skips this partition of the table, because retention has dropped it meanwhile.
          if ((error as { code?: string }).code === '42P01') return null;
          throw error;
        });
        if (count === null) break;
        deleted += count;
      }
    }
  }
  return deleted;
}

/**
 * Records in a database that these partitions do not belong to it, so that the database refuses flushes of these
 * partitions. Returns whether the database may still have rows of them.
 */
export function markAway(shard: Shard, share: Share): Promise<boolean> {
  return moving(shard, share, async (sql) => {
    const found = await sql.some`select from partitions where partition = any(${share.partitions}::int[])`;
    await sql.run`
      insert into partitions as p (partition, left_at) select unnest(${share.partitions}::int[]), now()
      on conflict (partition) do update
      set left_at = coalesce(p.left_at, excluded.left_at), rewrite_after = null`;
    return found;
  });
}

/** Makes a database refuse reads of partitions that have left it (see `ShardDatabase.whileCurrent`). */
export async function markOutdated(shard: Shard, share: Share): Promise<void> {
  await moving(
    shard,
    share,
    (sql) => sql.run`
      update partitions set left_at = coalesce(left_at, now()), outdated = true
      where partition = any(${share.partitions}::int[])`,
  );
}

/** Undoes `markAway`. */
export async function markPresent(shard: Shard, share: Share): Promise<void> {
  await moving(
    shard,
    share,
    (sql) => sql.run`update partitions set left_at = null where partition = any(${share.partitions}::int[])`,
  );
}

export const presentIn = (shard: Pick<Shard, 'db'>, partitions: readonly number[]) => shard.db.column<number>`
  select partition from partitions where partition = any(${partitions}::int[]) and left_at is null`;

export interface LeftPartition {
  readonly partition: number;
  /** Whether another database has served the partition since the partition left this database. */
  readonly outdated: boolean;
}

export const leftFrom = (shard: Shard, partitions: readonly number[]) => shard.db.rows<LeftPartition>`
  select partition, outdated from partitions
  where partition = any(${partitions}::int[]) and left_at is not null`;

const requestsAtOnce = 1_000;

async function bringRequests(source: Shard, target: Shard, share: Share): Promise<void> {
  for (let after = ''; ; ) {
    const rows = await source.db.rows<{ request: string; row: object }>`
      select request, to_jsonb(r) as row from control_requests r
      where partition = any(${share.partitions}::int[]) and request > ${after}
      order by request limit ${requestsAtOnce}`;
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last.request;
    const copies = JSON.stringify(rows.map(({ row }) => row));
    await moving(
      target,
      share,
      (sql) => sql.run`
        insert into control_requests
        select * from jsonb_populate_recordset(null::control_requests, ${copies}::jsonb) on conflict do nothing`,
    );
  }
}

/**
 * Copies the rows of the table `partitions`, and the stored results of calls that belong to these partitions. The
 * target then has all data of the moved partitions.
 */
export async function bringPartitions(source: Shard, target: Shard, share: Share): Promise<void> {
  const { partitions } = share;
  await bringRequests(source, target, share);
  const rows = await source.db.column<object>`
    select to_jsonb(p) from partitions p where partition = any(${partitions}::int[])`;
  await moving(target, share, async (sql) => {
    await sql.run`delete from partitions where partition = any(${partitions}::int[])`;
    // Starts from the list of partitions, because a partition that was never used has no row in the table `partitions`.
    await sql.run`
      insert into partitions select p.* from unnest(${partitions}::int[]) as wanted (partition)
      left join jsonb_array_elements(${JSON.stringify(rows)}::jsonb) r
        on (r ->> 'partition')::int = wanted.partition
      cross join jsonb_populate_record(
        jsonb_populate_record(null::partitions, '{"incarnation": 0, "run_id": "", "flushed_version": 0}'),
        coalesce(r, '{}')
          || jsonb_build_object('partition', wanted.partition, 'left_at', null, 'outdated', false)) p`;
  });
}

export const isRewriting = (shard: Shard, partitions: readonly number[]) => shard.db.some`
  select from partitions where partition = any(${partitions}::int[]) and rewrite_after is not null limit 1`;

export interface ShardSize {
  readonly bytes: number;
  /** The number of messages, as last estimated by Postgres. */
  readonly messages: number;
}

/** Returns the size of tables in bytes, including indexes. */
export async function sizeOf(shard: Shard, tables: readonly string[]): Promise<ShardSize> {
  return shard.db.one<ShardSize>`
    select coalesce(sum(pg_total_relation_size(i.relid)), 0)::bigint as bytes,
      coalesce(sum(greatest(c.reltuples, 0)) filter (where t.name = 'messages'), 0)::bigint as messages
    from unnest(${tables}::text[]) as t (name) cross join lateral ${leavesOf('t.name')} i
    join pg_class c on c.oid = i.relid`;
}

/** Counts the messages of each partition exactly, by reading all of them. */
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

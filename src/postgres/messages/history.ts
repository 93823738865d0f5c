/** Loads the state of a Postgres server, and repairs a server that was restored to an earlier state. */
import { postgresLimits as limits } from '../limits.js';
import type { Pool, Queryable } from '../pool.js';
import { fragment, plainSql } from '../sql.js';

export interface ServerState {
  readonly server: string;
  readonly standby: boolean;
  /** The system identifier and the timeline. A restart changes neither of them. */
  readonly history: string;
  readonly incarnation: number;
  readonly installation: string | null;
  readonly marks: ReadonlyMap<number, number>;
  /** How many partitions may still have entities in Redis that must be written to Postgres again. */
  readonly rewriting: number;
}

export async function loadServerState(connection: Queryable): Promise<ServerState> {
  const row = await plainSql(connection).one<
    Omit<ServerState, 'marks'> & { readonly marks: Readonly<Record<string, number>> | null }
  >`
    select server_identity() as server, pg_is_in_recovery() as standby,
      (select system_identifier::text from pg_control_system()) || ' ' || split_part(server_identity(), ' ', 2)
        as history,
      coalesce((select value::int from installation where name = 'postgres_incarnation'), 0) as incarnation,
      (select value from installation where name = 'ID') as installation,
      (select json_object_agg(shard, mark) from control_marks) as marks,
      (select count(*)::int from partitions where rewrite_after is not null) as rewriting`;
  const marks = Object.entries(row.marks ?? {}).map(([shard, mark]) => [Number(shard), mark] as const);
  return { ...row, marks: new Map(marks) };
}

export const lockHistory = (tx: Queryable) => plainSql(tx).run`select pg_advisory_xact_lock(7265727374)`;

/**
 * Raises the session's timeouts to 120 s. The session may wait long for the lock, because the session that has the lock
 * waits for other connections and for Redis.
 */
export const waitLong = (tx: Queryable) => plainSql(tx).run`
  select set_config('idle_in_transaction_session_timeout', '120s', true),
    set_config('statement_timeout', '120s', true)`;

/** Repeats the revocations that Redis has stored. Returns how many of them Postgres had lost. */
export async function revokeAgain(connection: Queryable, revoked: readonly string[]): Promise<number> {
  const sql = plainSql(connection);
  const of = (kind: string) =>
    revoked.filter((each) => each.startsWith(kind)).map((each) => each.slice(kind.length));
  const bytes = (texts: readonly string[]) => texts.map((text) => Buffer.from(text, 'base64'));
  const lookups = bytes(revoked.filter((each) => !each.includes(':')));
  const suspend = (table: 'bots' | 'users', ids: readonly number[]) => sql.rows`
    update ${fragment(table)} set suspended_at = now(), version = nextval('control_versions')
    where id = any(${ids}::bigint[]) and suspended_at is null returning 1`;
  const bots = await sql.rows`
    update bots set blocked_hmac = token_hmac, blocked_at = coalesce(blocked_at, now()),
      version = nextval('control_versions')
    where token_hmac = any(${lookups}::bytea[]) and blocked_hmac is distinct from token_hmac returning 1`;
  const people = await sql.rows`
    with ended as (delete from user_tokens where hmac = any(${lookups}::bytea[]) returning user_id),
      raised as (update users set version = nextval('control_versions') where id in (select user_id from ended))
    select 1 from ended`;
  await sql.run`insert into former_tokens (hmac) select unnest(${lookups}::bytea[]) on conflict do nothing`;
  const admins = await sql.rows`
    delete from admin_tokens where fingerprint = any(${bytes(of('admin:'))}::bytea[]) returning 1`;
  const suspended = [
    ...(await suspend('bots', of('bot:').map(Number))),
    ...(await suspend('users', of('user:').map(Number))),
  ];
  return bots.length + people.length + admins.length + suspended.length;
}

/**
 * How many values to skip in a sequence whose last value Redis does not know. Postgres cannot have lost more values
 * than this.
 */
const blind_skip = 1_000_000;

/** After Postgres lost transactions, advances all sequences past the values that they returned before the loss. */
export async function skipSequences(
  connection: Queryable,
  lastId: number,
  lastVersion: number,
): Promise<void> {
  const skip = limits.postgres_sequence_skip;
  await plainSql(connection).run`
    select setval('ids', greatest((select last_value from ids), ${lastId}::bigint) + ${skip}::bigint),
      setval('control_versions',
        greatest((select last_value from control_versions), ${lastVersion}::bigint) + ${skip}::bigint)`;
  await skipOwnSequences(connection);
}

export const skipOwnSequences = (connection: Queryable) => plainSql(connection).run`
  select setval(format('%I.%I', schemaname, sequencename)::regclass,
    coalesce(last_value, 1) + ${blind_skip}::bigint)
  from pg_sequences where schemaname = current_schema() and sequencename not in ('ids', 'control_versions')
    and data_type = 'bigint'::regtype`;

/**
 * Marks the partitions whose entities must be written from Redis to Postgres again. For each partition, stores the
 * version up to which this Postgres already has the entities.
 */
export const beginRewrite = (tx: Queryable, partitions: readonly number[]) => plainSql(tx).run`
  insert into partitions as p (partition, rewrite_after) select unnest(${partitions}::int[]), 0
  on conflict (partition) do update set rewrite_after = coalesce(p.rewrite_after, p.flushed_version)`;

/**
 * Marks partitions that other databases serve, so that the rewrite checks the webhooks of their bots. `rewrite_after`
 * is greater than the version of any entity, so the rewrite writes no entities of these partitions.
 */
export const beginWebhooks = (tx: Queryable, partitions: readonly number[]) => plainSql(tx).run`
  insert into partitions as p (partition, rewrite_after, left_at)
  select unnest(${partitions}::int[]), ${Number.MAX_SAFE_INTEGER}::bigint, now()
  on conflict (partition) do update set rewrite_after = excluded.rewrite_after`;

export interface Rewrite {
  readonly partition: number;
  readonly rewrite_after: number;
}

export const loadRewrites = (pool: Pool) => plainSql(pool).rows<Rewrite>`
  select partition, rewrite_after from partitions where rewrite_after is not null`;

export const finishRewrite = (pool: Pool, { partition, rewrite_after }: Rewrite) => plainSql(pool).run`
  update partitions set rewrite_after = null
  where partition = ${partition} and rewrite_after = ${rewrite_after}`;

/**
 * Repairs webhooks after Postgres lost settings that the bots' queues in Redis still have. `version` is the version of
 * the settings in the bot's queue. If Postgres has an older version, the outbox sweep copies the settings from Postgres
 * to the queue. If Postgres has no settings for a bot, the subject of the outbox row is `webhook_lost`.
 */
export async function renewWebhooks(
  pool: Pool,
  hooked: ReadonlyArray<{ readonly bot: number; readonly version: number }>,
): Promise<void> {
  if (hooked.length === 0) return;
  await plainSql(pool).run`
    with behind as (
      select h.bot_id, w.bot_id is not null as known
      from unnest(${hooked.map(({ bot }) => bot)}::bigint[], ${hooked.map(({ version }) => version)}::bigint[])
        as h (bot_id, version) left join webhooks w on w.bot_id = h.bot_id
      where h.version > coalesce(w.version, 0)
    ), renewed as (
      update webhooks set version = nextval('control_versions') where bot_id in (select bot_id from behind)
    )
    insert into control_outbox (subject, subject_id)
    select case when known then 'webhook' else 'webhook_lost' end, bot_id from behind`;
}

export async function acceptServer(
  connection: Queryable,
  marks: ReadonlyMap<number, number>,
  incarnation: number,
): Promise<void> {
  const sql = plainSql(connection);
  await sql.run`
    insert into control_marks as m (shard, mark)
    select * from unnest(${[...marks.keys()]}::int[], ${[...marks.values()]}::bigint[])
    on conflict (shard) do update set mark = greatest(m.mark, excluded.mark)`;
  await sql.run`
    insert into installation (name, value) values ('postgres_incarnation', ${incarnation}::int::text)
    on conflict (name) do update set value = excluded.value`;
}

export interface PostgresLoss {
  readonly at: string;
  /** The number of committed transactions that Postgres lost. */
  readonly transactions: number;
  /** The number of lost token revocations and suspensions that were applied again. */
  readonly revoked: number;
}

export const noteLostTransactions = (connection: Queryable, transactions: number, revoked: number) =>
  plainSql(connection).run`
    insert into installation (name, value) values ('postgres_lost', json_build_object(
      'at', now(), 'transactions', ${transactions}::bigint, 'revoked', ${revoked}::int)::text)
    on conflict (name) do update set value = excluded.value`;

/** Returns the last loss of committed transactions, or null if Postgres was never restored to an earlier state. */
export async function lastPostgresLoss(pool: Pool): Promise<PostgresLoss | null> {
  const value = await plainSql(pool).firstValue<string>`
    select value from installation where name = 'postgres_lost'`;
  return value === undefined ? null : JSON.parse(value);
}

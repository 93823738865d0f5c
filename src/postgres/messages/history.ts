/**
 * Statements on the history of a Postgres: marks raised by each transaction that changes something, and repairs after
 * it was restored to an earlier state.
 */
import { limits } from '../../limits.js';
import { type Call, type Pool, type Queryable, statement } from '../pool.js';

/** The mark that a transaction raised at its end; a transaction that changed nothing has none. */
export interface RaisedMark {
  readonly shard: number;
  /** The server of the transaction, as the guard named it. */
  readonly server: string;
  readonly raised: number;
  /** The last id and the last version of a control record that were given out. */
  readonly last_id: number;
  readonly last_version: number;
  /** One line per change: `+` and the revoked item, or `-` and the item that is accepted again. */
  readonly revocations: string;
}

export interface ControlMarks {
  /**
   * Reports a committed transaction to Redis, and waits until Redis has it. If Redis is unavailable, the report is
   * sent with the next one. Error: `unavailable` when another server has replaced the one of the commit and does not
   * have the transaction.
   */
  note(raised: readonly RaisedMark[]): Promise<void>;
}

const raise = statement(
  'raise_control_mark',
  'select $1::int as shard, $2::text as server, raised, last_id, last_version, revocations from raise_control_mark($1, $2)',
);

/** The last statement of a transaction on a server with this name; it raises the mark. */
export const raiseMark = (server: string): Call => ({
  statement: raise,
  // Marks are spread over several rows, so that transactions that end together do not wait for each other.
  values: [Math.floor(Math.random() * limits.control_mark_shards), server],
});

/** Identity and position of a Postgres server. */
export interface ServerState {
  /** Name of the running server, as `server_identity` returns it. */
  readonly server: string;
  readonly standby: boolean;
  /** System identifier and timeline, which do not change on a restart. */
  readonly history: string;
  readonly incarnation: number;
  /** Id of the installation. */
  readonly installation: string | null;
  readonly marks: ReadonlyMap<number, number>;
  /** Number of partitions that are being written again from Redis. */
  readonly rewriting: number;
}

interface StateRow {
  server: string;
  standby: boolean;
  history: string;
  incarnation: number;
  installation: string | null;
  marks: Record<string, number>;
  rewriting: number;
}

const serverState = statement(
  'server_state',
  `select server_identity() as server, pg_is_in_recovery() as standby,
     (select system_identifier::text from pg_control_system()) || ' ' || split_part(server_identity(), ' ', 2) as history,
     coalesce((select value::int from installation where name = 'postgres_incarnation'), 0) as incarnation,
     (select value from installation where name = 'ID') as installation,
     (select json_object_agg(shard, mark) from control_marks) as marks,
     (select count(*)::int from partitions where rewrite_after is not null) as rewriting`,
);

export async function loadServerState(connection: Queryable): Promise<ServerState> {
  const [row] = (await connection.query<StateRow>(serverState)).rows;
  if (row === undefined) throw new Error('Postgres returned no server state');
  const marks = Object.entries(row.marks ?? {}).map(([shard, mark]) => [Number(shard), mark] as const);
  return { ...row, marks: new Map(marks) };
}

/** Makes other repairs of the same server wait until the transaction ends. */
export const lockHistory = statement('lock_history', 'select pg_advisory_xact_lock(7265727374)');

/** Raises the session's timeouts to 120 s: the holder of the lock waits for other connections and for Redis. */
export const waitLong = statement(
  'history_wait_long',
  "select set_config('idle_in_transaction_session_timeout', '120s', true), set_config('statement_timeout', '120s', true)",
);

const revokeBots = statement(
  'history_revoke_bots',
  `with ended as (
     update bots set blocked_hmac = token_hmac, blocked_at = coalesce(blocked_at, now()), version = nextval('control_versions')
      where token_hmac = any($1::bytea[]) and blocked_hmac is distinct from token_hmac returning 1
   ) select count(*)::int as count from ended`,
);
const revokeUsers = statement(
  'history_revoke_users',
  `with ended as (delete from user_tokens where hmac = any($1::bytea[]) returning user_id),
     raised as (update users set version = nextval('control_versions') where id in (select user_id from ended))
   select count(*)::int as count from ended`,
);
const revokeAdmins = statement(
  'history_revoke_admins',
  `with ended as (delete from admin_tokens where fingerprint = any($1::bytea[]) returning 1)
   select count(*)::int as count from ended`,
);
const rememberEnded = statement(
  'history_former_tokens',
  'insert into former_tokens (hmac) select unnest($1::bytea[]) on conflict do nothing',
);
const suspend = (table: 'bots' | 'users') =>
  statement(
    `history_suspend_${table}`,
    `with ended as (
       update ${table} set suspended_at = now(), version = nextval('control_versions')
        where id = any($1::bigint[]) and suspended_at is null returning 1
     ) select count(*)::int as count from ended`,
  );
const suspendBots = suspend('bots');
const suspendUsers = suspend('users');

/** Repeats revocations that Redis remembers. Returns how many of them Postgres had lost. */
export async function revokeAgain(connection: Queryable, revoked: readonly string[]): Promise<number> {
  const of = (kind: string) =>
    revoked.filter((each) => each.startsWith(kind)).map((each) => each.slice(kind.length));
  const bytes = (texts: readonly string[]) => texts.map((text) => Buffer.from(text, 'base64'));
  const lookups = bytes(revoked.filter((each) => !each.includes(':')));
  let forgotten = 0;
  const count = async (what: typeof revokeBots, values: unknown) => {
    forgotten += (await connection.query<{ count: number }>(what, [values])).rows[0]?.count ?? 0;
  };
  await count(revokeBots, lookups);
  await count(revokeUsers, lookups);
  await connection.query(rememberEnded, [lookups]);
  await count(revokeAdmins, bytes(of('admin:')));
  await count(suspendBots, of('bot:').map(Number));
  await count(suspendUsers, of('user:').map(Number));
  return forgotten;
}

/** How far other sequences skip. Redis does not know their ids, but they cannot have given out this many. */
const blind_skip = 1_000_000;

const skipIds = statement(
  'history_skip_ids',
  `select setval('ids', greatest((select last_value from ids), $1::bigint) + $3::bigint),
     setval('control_versions', greatest((select last_value from control_versions), $2::bigint) + $3::bigint)`,
);
const skipOthers = statement(
  'history_skip_others',
  `select setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, 1) + $1::bigint)
     from pg_sequences where schemaname = current_schema() and sequencename not in ('ids', 'control_versions')
      and data_type = 'bigint'::regtype`,
);

/** Moves all sequences past values that they gave out before the loss. */
export async function skipSequences(
  connection: Queryable,
  lastId: number,
  lastVersion: number,
): Promise<void> {
  await connection.query(skipIds, [lastId, lastVersion, limits.postgres_sequence_skip]);
  await connection.query(skipOthers, [blind_skip]);
}

/** Moves the sequences of a database without control records past values that they gave out before the loss. */
export async function skipOwnSequences(connection: Queryable): Promise<void> {
  await connection.query(skipOthers, [blind_skip]);
}

/** Marks partitions to be rewritten from the version that this Postgres has. */
export const beginRewrite = statement(
  'history_begin_rewrite',
  `insert into partitions as p (partition, rewrite_after) select unnest($1::int[]), 0
   on conflict (partition) do update set rewrite_after = coalesce(p.rewrite_after, p.flushed_version)`,
);

/** Marks partitions of other databases so that only their webhooks are checked: no entity can have this version. */
export const beginWebhooks = statement(
  'history_begin_webhooks',
  `insert into partitions as p (partition, rewrite_after, left_at) select unnest($1::int[]), ${Number.MAX_SAFE_INTEGER}, now()
   on conflict (partition) do update set rewrite_after = excluded.rewrite_after`,
);

export interface Rewrite {
  readonly partition: number;
  readonly rewrite_after: number;
}

const pendingRewrites = statement(
  'history_pending_rewrites',
  'select partition, rewrite_after from partitions where rewrite_after is not null',
);
const endRewrite = statement(
  'history_end_rewrite',
  'update partitions set rewrite_after = null where partition = $1 and rewrite_after = $2',
);

export const loadRewrites = async (pool: Pool): Promise<Rewrite[]> =>
  (await pool.query<Rewrite>(pendingRewrites)).rows;

export async function finishRewrite(pool: Pool, { partition, rewrite_after }: Rewrite): Promise<void> {
  await pool.query(endRewrite, [partition, rewrite_after]);
}

/** Makes sweeps apply the webhook settings in Postgres to the queue of each such bot: `webhook_lost` if it has none. */
const renewOlderWebhooks = statement(
  'history_renew_webhooks',
  `with behind as (
     select h.bot_id, w.bot_id is not null as known
       from unnest($1::bigint[], $2::bigint[]) as h (bot_id, version) left join webhooks w on w.bot_id = h.bot_id
      where h.version > coalesce(w.version, 0)
   ), renewed as (
     update webhooks set version = nextval('control_versions') where bot_id in (select bot_id from behind)
   )
   insert into control_outbox (subject, subject_id)
   select case when known then 'webhook' else 'webhook_lost' end, bot_id from behind`,
);

/** Renews the webhooks of bots whose queue in Redis has settings that Postgres lost, given the version in each queue. */
export async function renewWebhooks(
  pool: Pool,
  hooked: ReadonlyArray<{ readonly bot: number; readonly version: number }>,
): Promise<void> {
  if (hooked.length === 0) return;
  await pool.query(renewOlderWebhooks, [hooked.map(({ bot }) => bot), hooked.map(({ version }) => version)]);
}

const raiseMarks = statement(
  'history_raise_marks',
  `insert into control_marks as m (shard, mark) select * from unnest($1::int[], $2::bigint[])
   on conflict (shard) do update set mark = greatest(m.mark, excluded.mark)`,
);
const setIncarnation = statement(
  'history_set_incarnation',
  `insert into installation (name, value) values ('postgres_incarnation', $1::int::text)
   on conflict (name) do update set value = excluded.value`,
);

/** Records that this Postgres, which was restored to an earlier state, is repaired. */
export async function acceptServer(
  connection: Queryable,
  marks: ReadonlyMap<number, number>,
  incarnation: number,
): Promise<void> {
  await connection.query(raiseMarks, [[...marks.keys()], [...marks.values()]]);
  await connection.query(setIncarnation, [incarnation]);
}

/** Report on a Postgres that was restored to an earlier state. */
export interface PostgresLoss {
  readonly at: string;
  /** Number of committed transactions that it no longer has. */
  readonly transactions: number;
  /** Number of tokens and suspensions that were revoked again. */
  readonly revoked: number;
}

const noteLoss = statement(
  'note_postgres_loss',
  `insert into installation (name, value)
   values ('postgres_lost', json_build_object('at', now(), 'transactions', $1::bigint, 'revoked', $2::int)::text)
   on conflict (name) do update set value = excluded.value`,
);
const loss = statement('postgres_loss', "select value from installation where name = 'postgres_lost'");

export async function noteLostTransactions(
  connection: Queryable,
  transactions: number,
  revoked: number,
): Promise<void> {
  await connection.query(noteLoss, [transactions, revoked]);
}

/** The last time that Postgres was found to have been restored to an earlier state. Null if there was none. */
export async function lastPostgresLoss(pool: Pool): Promise<PostgresLoss | null> {
  const [row] = (await pool.query<{ value: string }>(loss)).rows;
  return row === undefined ? null : (JSON.parse(row.value) as PostgresLoss);
}

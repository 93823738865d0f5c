/** Statements on administrators' tokens and on the log of their calls. */
import { type Database, isDuplicate, one, type Sql } from '../sql.js';

export interface AdminTokenRow {
  readonly id: number;
  readonly name: string;
  /** when the token was created, Unix time in s */
  readonly created_at: number;
  /** when the token expires, Unix time in s; null for one that does not */
  readonly expires_at: number | null;
}

const tokenColumns = `id, name, extract(epoch from created_at)::bigint as created_at,
  extract(epoch from expires_at)::bigint as expires_at`;

/** Finds the valid token with this fingerprint. */
export async function findAdminToken(sql: Sql, fingerprint: Buffer): Promise<AdminTokenRow | null> {
  const [row] = await sql.query<AdminTokenRow>(
    `select ${tokenColumns} from admin_tokens
      where fingerprint = $1 and (expires_at is null or expires_at > now())`,
    [fingerprint],
  );
  return row ?? null;
}

export interface NewAdminToken {
  readonly name: string;
  /** Days until the token expires; null for a token that does not expire. */
  readonly days: number | null;
  /** Computes the fingerprint of the token with the given id. */
  readonly fingerprintOf: (id: number) => Buffer;
}

/** Adds a token and returns its id; `taken` if another token has the name, `full` if there are `max` tokens. */
export function addAdminToken(
  db: Database,
  { name, days, fingerprintOf }: NewAdminToken,
  max: number,
): Promise<number | 'taken' | 'full'> {
  return db
    .transaction(async (sql) => {
      await sql.query('lock table admin_tokens in share row exclusive mode');
      const { count } = await one<{ count: number }>(sql, 'select count(*) as count from admin_tokens');
      if (Number(count) >= max) return 'full' as const;
      const { id } = await one<{ id: number }>(
        sql,
        "select nextval(pg_get_serial_sequence('admin_tokens', 'id')) as id",
      );
      await sql.query(
        `insert into admin_tokens (id, name, fingerprint, expires_at) overriding system value
         values ($1, $2, $3, now() + $4::integer * interval '1 day')`,
        [id, name, fingerprintOf(Number(id)), days],
      );
      return Number(id);
    })
    .catch((error) => {
      if (isDuplicate(error)) return 'taken' as const;
      throw error;
    });
}

export const listAdminTokens = (sql: Sql): Promise<AdminTokenRow[]> =>
  sql.query(`select ${tokenColumns} from admin_tokens order by name`);

/** Removes a token. Returns false when there is no token of this name. */
export function removeAdminToken(db: Database, name: string): Promise<boolean> {
  // Runs in a transaction, so that Redis learns of the change.
  return db.transaction(async (sql) => {
    const rows = await sql.query('delete from admin_tokens where name = $1 returning 1', [name]);
    return rows.length > 0;
  });
}

/** A call of an administrator. None of its texts may contain a token. */
export interface AdminCall {
  /** Name of the token. */
  readonly token: string;
  readonly action: string;
  readonly target: string;
  readonly address: string;
}

export interface AdminCallRow extends AdminCall {
  readonly id: number;
  /** when the call was made, Unix time in s; for a group of equal calls, the time of the first */
  readonly at: number;
  /** HTTP status of the response; null for a change whose outcome is not known. */
  readonly status: number | null;
  readonly times: number;
}

const texts = ({ token, action, target, address }: AdminCall) => [token, action, target, address];

/** Logs a change before it is made; returns the id of the entry. */
export async function beginAdminCall(sql: Sql, call: AdminCall): Promise<number> {
  const { id } = await one<{ id: number }>(
    sql,
    'insert into admin_calls (token, action, target, address) values ($1, $2, $3, $4) returning id',
    texts(call),
  );
  return Number(id);
}

export async function endAdminCall(sql: Sql, id: number, status: number): Promise<void> {
  await sql.query('update admin_calls set status = $2 where id = $1', [id, status]);
}

/** Logs a call that changed nothing. Equal calls within an hour share one entry. */
export async function countAdminCall(sql: Sql, call: AdminCall, status: number): Promise<void> {
  await sql.query(
    `insert into admin_calls (token, action, target, address, status, hour)
     values ($1, $2, $3, $4, $5, date_trunc('hour', now()))
     on conflict (hour, token, action, target, address, status) where hour is not null
     do update set times = admin_calls.times + 1`,
    [...texts(call), status],
  );
}

/** Log entries with ids below `before`, newest first. */
export const listAdminCalls = (sql: Sql, before: number, limit: number): Promise<AdminCallRow[]> =>
  sql.query(
    `select id, extract(epoch from at)::bigint as at, token, action, target, address, status, times
       from admin_calls where id < $1 order by id desc limit $2`,
    [before, limit],
  );

/** SQL statements for administrators' tokens and for the log of their API calls. */
import { type Database, fragment, isDuplicate, type Sql, seconds } from '../sql.js';

export interface AdminTokenRow {
  readonly id: number;
  readonly name: string;
  /** The Unix time in seconds at which the token was created. */
  readonly created_at: number;
  /** The Unix time in seconds at which the token expires. Null if the token does not expire. */
  readonly expires_at: number | null;
}

const tokenColumns = fragment(`id, name, ${seconds('created_at')} as created_at,
  ${seconds('expires_at')} as expires_at`);

export const findAdminToken = (sql: Sql, fingerprint: Buffer) => sql.first<AdminTokenRow>`
  select ${tokenColumns} from admin_tokens
  where fingerprint = ${fingerprint} and (expires_at is null or expires_at > now())`;

export interface NewAdminToken {
  readonly name: string;
  readonly days: number | null;
  readonly fingerprintOf: (id: number) => Buffer;
}

/** Adds a token. Returns `taken` if another token has this name, or `full` if there are already `max` tokens. */
export function addAdminToken(
  db: Database,
  { name, days, fingerprintOf }: NewAdminToken,
  max: number,
): Promise<number | 'taken' | 'full'> {
  return db
    .transaction(async (sql) => {
      await sql.run`lock table admin_tokens in share row exclusive mode`;
      const count = await sql.value<number>`select count(*) as count from admin_tokens`;
      if (count >= max) return 'full' as const;
      const id = await sql.value<number>`select nextval(pg_get_serial_sequence('admin_tokens', 'id')) as id`;
      await sql.run`
        insert into admin_tokens (id, name, fingerprint, expires_at) overriding system value
        values (${id}, ${name}, ${fingerprintOf(id)}, now() + ${days}::integer * interval '1 day')`;
      return id;
    })
    .catch((error) => {
      if (isDuplicate(error)) return 'taken' as const;
      throw error;
    });
}

export const listAdminTokens = (sql: Sql): Promise<AdminTokenRow[]> =>
  sql.rows`select ${tokenColumns} from admin_tokens order by name`;

export function removeAdminToken(db: Database, name: string): Promise<boolean> {
  // Uses a transaction, because a statement outside of a transaction would not report the revocation to Redis.
  return db.transaction((sql) => sql.some`delete from admin_tokens where name = ${name} returning 1`);
}

/** An API call by an administrator. None of its fields may contain a token. */
export interface AdminCall {
  readonly token: string;
  readonly action: string;
  readonly target: string;
  readonly address: string;
}

export interface AdminCallRow extends AdminCall {
  readonly id: number;
  /** The Unix time in seconds at which the call, or the first call of a group of identical calls, was made. */
  readonly at: number;
  /** The HTTP status, or null for a change whose outcome is unknown. */
  readonly status: number | null;
  readonly times: number;
}

/** Logs a call that changes something, before the change. Returns the id of the log entry. */
export const beginAdminCall = (sql: Sql, { token, action, target, address }: AdminCall) => sql.value<number>`
  insert into admin_calls (token, action, target, address)
  values (${token}, ${action}, ${target}, ${address}) returning id`;

export const endAdminCall = (sql: Sql, id: number, status: number) => sql.run`
  update admin_calls set status = ${status} where id = ${id}`;

/** Logs a call that only read data. Identical calls within the same hour share one log entry. */
export const countAdminCall = (
  sql: Sql,
  { token, action, target, address }: AdminCall,
  status: number,
) => sql.run`
  insert into admin_calls (token, action, target, address, status, hour)
  values (${token}, ${action}, ${target}, ${address}, ${status}, date_trunc('hour', now()))
  on conflict (hour, token, action, target, address, status) where hour is not null
  do update set times = admin_calls.times + 1`;

export const listAdminCalls = (sql: Sql, before: number, limit: number): Promise<AdminCallRow[]> =>
  sql.rows`
    select id, ${seconds('at')} as at, token, action, target, address, status, times
    from admin_calls where id < ${before} order by id desc limit ${limit}`;

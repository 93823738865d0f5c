/** SQL statements for sessions. A session is a token that was issued at a sign-in (decision 0082). */
import { ruleLimits as limits } from '../../rules/limits.js';
import { type Database, fragment, noteStale, type Sql, seconds } from '../sql.js';
import { raiseVersion } from './users.js';

export interface SessionRow {
  readonly id: number;
  /** The family of the browser that signed in, or '' if it is unknown. */
  readonly agent: string;
  /** The Unix time in seconds at which the session was created. */
  readonly created_at: number;
  /** The day of the session's last use as YYYY-MM-DD in UTC, or null if the session was never used. */
  readonly last_used_on: string | null;
  readonly is_current: boolean;
}

/** The day of a token's last use, or the day of its creation if it was never used. */
const lastUsed = fragment("greatest(last_used_on, (created_at at time zone 'utc')::date)");

/**
 * Adds a session for a person. If the person then has too many sessions, removes those that have been unused longest.
 * Returns whether a session was removed, or null if there is no such person.
 */
export function addSession(
  db: Database,
  user: number,
  agent: string,
  lookup: Buffer,
): Promise<{ readonly removed: boolean } | null> {
  return db.transaction(async (sql) => {
    // `raiseVersion` locks the person, so that concurrent calls for the same person wait for each other.
    if (!(await raiseVersion(sql, user))) return null;
    const removed = await sql.some`
      delete from user_tokens where user_id = ${user} and id in (
        select id from user_tokens where user_id = ${user} and agent is not null
        order by ${lastUsed} desc, id desc
        offset ${limits.user_sessions_max - 1})
      returning id`;
    await sql.run`insert into user_tokens (user_id, hmac, agent) values (${user}, ${lookup}, ${agent})`;
    await noteStale(sql, [['user', user]]);
    return { removed };
  });
}

/** Returns the sessions of a person, newest first. `lookups` are the lookup values of the caller's token. */
export const loadSessions = (sql: Sql, user: number, lookups: readonly Buffer[]) => sql.rows<SessionRow>`
  select id, agent, ${seconds('created_at')} as created_at, last_used_on::text as last_used_on,
    hmac = any(${lookups}::bytea[]) as is_current
  from user_tokens where user_id = ${user} and agent is not null
  order by id desc limit ${limits.user_sessions_max}`;

export interface UnusedStep {
  readonly place: number;
  readonly over: boolean;
  /** The people whose sessions were removed. */
  readonly users: readonly number[];
  readonly removed: number;
}

/**
 * Of the next `limit` tokens after the token id `after`, removes the sessions that have been unused for more than
 * `days` days (in UTC).
 */
export async function removeUnused(
  sql: Sql,
  days: number,
  after: number,
  limit: number,
): Promise<UnusedStep> {
  const page = await sql.rows<{ readonly id: number; readonly user: number; readonly unused: boolean }>`
    select id, user_id as user, agent is not null and ${lastUsed} < (now() at time zone 'utc')::date - ${days}::int as unused
    from user_tokens where id > ${after} order by id limit ${limit}`;
  const step = { place: page.at(-1)?.id ?? after, over: page.length < limit };
  const unused = page.filter((token) => token.unused);
  const users = [...new Set(unused.map(({ user }) => user))].sort((a, b) => a - b);
  if (users.length === 0) return { ...step, users, removed: 0 };
  for (const user of users) await raiseVersion(sql, user);
  const removed = await sql.rows`
    delete from user_tokens where id = any(${unused.map(({ id }) => id)}::bigint[]) and agent is not null
      and ${lastUsed} < (now() at time zone 'utc')::date - ${days}::int
    returning id`;
  await noteStale(
    sql,
    users.map((user) => ['user', user] as const),
  );
  return { ...step, users, removed: removed.length };
}

/**
 * The sessions to remove: the session with this id (`id`), the caller's session (`own`), or all sessions except the
 * caller's session (`except`). The caller's session is given by the lookup values of its token.
 */
export type SessionsEnded =
  | { readonly id: number }
  | { readonly own: readonly Buffer[] }
  | { readonly except: readonly Buffer[] };

/** Removes sessions, and returns how many. */
export function removeSessions(db: Database, user: number, which: SessionsEnded): Promise<number> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, user))) return 0;
    const removed = await ('id' in which
      ? sql.rows`delete from user_tokens where user_id = ${user} and agent is not null and id = ${which.id}
        returning id`
      : 'own' in which
        ? sql.rows`delete from user_tokens where user_id = ${user} and agent is not null
          and hmac = any(${which.own}::bytea[]) returning id`
        : sql.rows`delete from user_tokens where user_id = ${user} and agent is not null
          and not hmac = any(${which.except}::bytea[]) returning id`);
    if (removed.length > 0) await noteStale(sql, [['user', user]]);
    return removed.length;
  });
}

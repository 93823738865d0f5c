/** Interface between modules with statements and a connection, which may be a pool or a transaction. */

import { createHash } from 'node:crypto';
import { ApiError } from '../errors.js';
import { type ControlMarks, type RaisedMark, raiseMark } from './messages/history.js';
import { isUnavailable, type Pool, type Queryable, type Statement, statement } from './pool.js';

export interface Sql {
  query<T>(text: string, params?: readonly unknown[]): Promise<T[]>;
}

export interface Database extends Sql {
  /** Commits all changes of `work`, or none. `work` may run again after a serialization failure or a deadlock. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}

/** Whether a statement violated a unique constraint. */
export function isDuplicate(error: unknown): boolean {
  return (error as { code?: string } | null)?.code === '23505';
}

/** Returns the row of a statement that always returns one. */
export async function one<T>(sql: Sql, text: string, params?: readonly unknown[]): Promise<T> {
  const [row] = await sql.query<T>(text, params);
  if (row === undefined) throw new Error('a statement that returns a row returned none');
  return row;
}

/**
 * Records that a change makes a copy in Redis stale; the sweep refreshes the copy if the process that made the change
 * dies.
 */
export async function noteStale(
  sql: Sql,
  subjects: ReadonlyArray<readonly [subject: string, id: number, other?: number]>,
): Promise<void> {
  await sql.query(
    'insert into control_outbox (subject, subject_id, other_id) select * from unnest($1::text[], $2::bigint[], $3::bigint[])',
    [subjects.map((s) => s[0]), subjects.map((s) => s[1]), subjects.map((s) => s[2] ?? 0)],
  );
}

/**
 * Runs statements over a pool; fails with `unavailable` while Postgres is unavailable. Each statement is prepared
 * once per connection, under a name derived from its text. With `marks`, each transaction that changes something
 * raises a mark, which Redis learns before the call returns.
 */
export function asDatabase(pool: Pool, marks?: ControlMarks): Database {
  const prepared = new Map<string, Statement>();
  const over = (queryable: Queryable): Sql => ({
    async query<T>(text: string, params: readonly unknown[] = []) {
      let known = prepared.get(text);
      if (!known) {
        known = statement(createHash('sha1').update(text).digest('base64url'), text);
        prepared.set(text, known);
      }
      return (await queryable.query(known, params)).rows as T[];
    },
  });
  const away = (error: unknown): never => {
    if (isUnavailable(error)) throw new ApiError('unavailable', { retry_after: 1 }, { cause: error });
    throw error;
  };
  return {
    query: <T>(text: string, params?: readonly unknown[]) => over(pool).query<T>(text, params).catch(away),
    async transaction<T>(work: (sql: Sql) => Promise<T>) {
      if (marks === undefined) return pool.transaction((tx) => work(over(tx))).catch(away);
      const done = await pool
        .transaction(async (tx) => {
          const result = await work(over(tx));
          const { statement, values } = raiseMark(tx.server);
          return { result, raised: (await tx.query<RaisedMark>(statement, values)).rows };
        })
        .catch(away);
      await marks.note(done.raised);
      return done.result;
    },
  };
}

/**
 * The same database for a call that may run again. The result of a transaction is stored with it under the next
 * request id, and a later run gets that result instead of repeating the change. Errors are not stored. Results must
 * be JSON.
 */
export function appliedOnce(db: Database, requestId: () => string): Database {
  return {
    query: db.query,
    transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
      const request = requestId();
      return db.transaction(async (sql) => {
        // Waits for a concurrent run's transaction.
        const fresh = await sql.query(
          'insert into control_requests (request) values ($1) on conflict do nothing returning 1',
          [request],
        );
        if (fresh.length === 0) {
          const known = await one<{ result: T }>(
            sql,
            'select result from control_requests where request = $1',
            [request],
          );
          return known.result;
        }
        const result = await work(sql);
        await sql.query('update control_requests set result = $2 where request = $1', [
          request,
          JSON.stringify(result ?? null),
        ]);
        return result;
      });
    },
  };
}

/** Whether a transaction with this request id was committed. */
export async function wasApplied(sql: Sql, request: string): Promise<boolean> {
  const rows = await sql.query('select 1 from control_requests where request = $1', [request]);
  return rows.length > 0;
}

export interface StaleRow {
  readonly id: number;
  readonly subject: string;
  readonly subject_id: number;
  readonly other_id: number;
}

/**
 * Takes copies that have been stale for `ageMs`, at most `limit`, and removes the outbox rows of those that `work`
 * reports as refreshed. Skips rows that another sweep is processing. Returns how many were removed.
 */
export async function takeStale(
  db: Database,
  ageMs: number,
  limit: number,
  work: (row: StaleRow) => Promise<boolean>,
): Promise<number> {
  // Usually no copy is stale; a transaction would need several round trips to find that out.
  const [some] = await db.query(
    "select 1 from control_outbox where created_at < now() - $1 * interval '1 millisecond' limit 1",
    [ageMs],
  );
  if (some === undefined) return 0;
  return db.transaction(async (sql) => {
    const rows = await sql.query<StaleRow>(
      `select id, subject, subject_id, other_id from control_outbox
        where created_at < now() - $1 * interval '1 millisecond'
        order by id limit $2 for update skip locked`,
      [ageMs, limit],
    );
    const refreshed = await Promise.all(rows.map(work));
    const done = rows.filter((_, i) => refreshed[i]).map((row) => row.id);
    await sql.query('delete from control_outbox where id = any($1)', [done]);
    return done.length;
  });
}

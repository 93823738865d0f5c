/** Defines the interface with which modules run SQL statements on a pool or in a transaction. */

import { createHash } from 'node:crypto';
import { ApiError } from '../errors.js';
import { type ControlMarks, markedTransaction } from './marks.js';
import { isRetryable, isUnavailable, type Pool, type Queryable, type Statement, statement } from './pool.js';

/** A piece of SQL text, as opposed to a value. The text must not come from a user. */
class Fragment {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

export const fragment = (text: string) => new Fragment(text);

/** Returns the SQL that converts a time to Unix seconds. */
export const seconds = (column: string) => fragment(`floor(extract(epoch from ${column}))::bigint`);

/** A statement as a template literal. Its values become parameters, but its fragments become part of the SQL text. */
type Template = [parts: TemplateStringsArray, ...values: unknown[]];

export interface Sql {
  /** Runs a statement whose text contains the parameters as $1, $2, … */
  query<T>(text: string, params?: readonly unknown[]): Promise<T[]>;
  rows<T = unknown>(...statement: Template): Promise<T[]>;
  first<T>(...statement: Template): Promise<T | null>;
  one<T>(...statement: Template): Promise<T>;
  value<T>(...statement: Template): Promise<T>;
  firstValue<T>(...statement: Template): Promise<T | undefined>;
  column<T>(...statement: Template): Promise<T[]>;
  some(...statement: Template): Promise<boolean>;
  run(...statement: Template): Promise<void>;
}

function only<T>(found: readonly T[]): T {
  if (found.length === 0) throw new Error('a statement that returns a row returned none');
  return found[0] as T;
}

export function sqlOver(query: Sql['query']): Sql {
  const rows: Sql['rows'] = (parts, ...values) => {
    const params = values.filter((value) => !(value instanceof Fragment));
    let place = 0;
    const texts = values.map((value) => (value instanceof Fragment ? value.text : `$${++place}`));
    return query(String.raw({ raw: parts }, ...texts), params);
  };
  const column: Sql['column'] = async <T>(...statement: Template) =>
    (await rows<object>(...statement)).map((row) => Object.values(row)[0] as T);
  return {
    ...{ query, rows, column },
    first: async <T>(...statement: Template) => (await rows<T>(...statement))[0] ?? null,
    one: async <T>(...statement: Template) => only(await rows<T>(...statement)),
    value: async <T>(...statement: Template) => only(await column<T>(...statement)),
    firstValue: async <T>(...statement: Template) => (await column<T>(...statement))[0],
    some: async (...statement) => (await rows(...statement)).length > 0,
    run: async (...statement) => void (await rows(...statement)),
  };
}

export interface Database extends Sql {
  /** Commits all changes of `work`, or none of them. After a serialisation failure or a deadlock, `work` runs again. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}

export interface ShardDatabase extends Database {
  /**
   * Returns this database for statements on rows of these partitions. Each statement fails with `unavailable` if
   * another database has newer rows of one of the partitions.
   */
  whileCurrent(partitions: readonly number[]): Database;
}

export function isDuplicate(error: unknown): boolean {
  return (error as { code?: string } | null)?.code === '23505';
}

export const one = async <T>(sql: Sql, text: string, params?: readonly unknown[]): Promise<T> =>
  only(await sql.query<T>(text, params));

/**
 * Records that a change made a copy in Redis stale. If the process that made the change dies before it refreshes the
 * copy, the outbox sweep refreshes it.
 */
export const noteStale = (
  sql: Sql,
  subjects: ReadonlyArray<readonly [subject: string, id: number, other?: number]>,
) => sql.run`
  insert into control_outbox (subject, subject_id, other_id) select *
  from unnest(${subjects.map((s) => s[0])}::text[], ${subjects.map((s) => s[1])}::bigint[],
    ${subjects.map((s) => s[2] ?? 0)}::bigint[])`;

const requireCurrent = 'select require_current($1::int[])';

/**
 * Adds a check to a query. Postgres runs the check once, in the snapshot of the query and before it reads any row. The
 * check and the rows therefore show the same state.
 */
export const checked = (query: string, check: string): string =>
  `select q.* from (${query}) q where (select true from ${check})`;

const prepared = new Map<string, Statement>();

export function prepare(text: string): Statement {
  let known = prepared.get(text);
  if (!known) {
    known = statement(createHash('sha1').update(text).digest('base64url'), text);
    prepared.set(text, known);
  }
  return known;
}

/** Runs statements on a pool or in a transaction. Throws the errors of Postgres unchanged. */
export const plainSql = (queryable: Queryable): Sql =>
  sqlOver(
    async <T>(text: string, params: readonly unknown[] = []) =>
      (await queryable.query(prepare(text), params)).rows as T[],
  );

/**
 * Runs statements on a pool. Error: `unavailable` while Postgres is unavailable. If `marks` is given, each transaction
 * that changes something raises a mark (a counter of changes), and returns only after Redis has stored this mark.
 */
export function asDatabase(pool: Pool, marks?: ControlMarks): ShardDatabase {
  const away = (error: unknown): never => {
    // Also reports a deadlock as `unavailable`, because the pool has already retried the transaction several times.
    if (isUnavailable(error) || isRetryable(error))
      throw new ApiError('unavailable', { retry_after: 1 }, { cause: error });
    throw error;
  };
  const plain = plainSql(pool);
  const tried: Pick<Pool, 'transaction'> = { transaction: (work) => pool.transaction(work).catch(away) };
  const transaction = <T>(work: (sql: Sql) => Promise<T>) =>
    markedTransaction(tried, marks, (tx) => work(plainSql(tx)));
  return {
    ...sqlOver((text, params) => plain.query<never>(text, params).catch(away)),
    transaction,
    whileCurrent(partitions) {
      // Runs the check after the work. Each statement has its own snapshot, so a check before the work would not cover
      // the work.
      const thenCheck = async <T>(sql: Sql, work: (sql: Sql) => Promise<T>): Promise<T> => {
        const result = await work(sql);
        await sql.query(requireCurrent, [partitions]);
        return result;
      };
      return {
        ...sqlOver((text, params = []) => {
          if (/^\s*select\b/.test(text)) {
            const own = checked(text, `require_current($${params.length + 1}::int[])`);
            return plain.query<never>(own, [...params, partitions]).catch(away);
          }
          const run = (sql: Sql) => sql.query<never>(text, params);
          return tried.transaction((tx) => thenCheck(plainSql(tx), run));
        }),
        transaction: (work) => transaction((sql) => thenCheck(sql, work)),
      };
    },
  };
}

/**
 * Returns a wrapper of `db` for a call that may be repeated. Each transaction stores its result under the next request
 * id. If the call is repeated, the transaction returns this result instead of repeating its change. Errors are not
 * stored. Results must be JSON. If `partition` is given, the results belong to this partition, and move to another
 * database together with its rows.
 */
export function appliedOnce(
  db: Database,
  requestId: () => string,
  partition: number | null = null,
): Database {
  return {
    ...db,
    transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
      const request = requestId();
      return db.transaction(async (sql) => {
        // Waits while a transaction of the same call is still running in another process.
        const fresh = await sql.some`
          insert into control_requests (request, partition) values (${request}, ${partition})
          on conflict do nothing returning 1`;
        if (!fresh) return sql.value<T>`select result from control_requests where request = ${request}`;
        const result = await work(sql);
        await sql.run`
          update control_requests set result = ${JSON.stringify(result ?? null)} where request = ${request}`;
        return result;
      });
    },
  };
}

/** Returns whether a transaction with this request id was committed. */
export const wasApplied = (sql: Sql, request: string) => sql.some`
  select 1 from control_requests where request = ${request}`;

export interface StaleRow {
  readonly id: number;
  readonly subject: string;
  readonly subject_id: number;
  readonly other_id: number;
}

/**
 * Lets `work` refresh up to `limit` copies that have been stale for at least `ageMs`. `work` returns whether it has
 * refreshed the copy. Removes the outbox rows of refreshed copies, and returns their number. Skips rows that another
 * sweep is processing.
 */
export async function takeStale(
  db: Database,
  ageMs: number,
  limit: number,
  work: (row: StaleRow) => Promise<boolean>,
): Promise<number> {
  // Checks for stale copies before beginning a transaction. Usually there are none, and a transaction takes several
  // round trips.
  const some = await db.some`
    select 1 from control_outbox where created_at < now() - ${ageMs} * interval '1 millisecond' limit 1`;
  if (!some) return 0;
  return db.transaction(async (sql) => {
    const rows = await sql.rows<StaleRow>`
      select id, subject, subject_id, other_id from control_outbox
      where created_at < now() - ${ageMs} * interval '1 millisecond'
      order by id limit ${limit} for update skip locked`;
    const refreshed = await Promise.all(rows.map(work));
    const done = rows.filter((_, i) => refreshed[i]).map((row) => row.id);
    await sql.run`delete from control_outbox where id = any(${done})`;
    return done.length;
  });
}

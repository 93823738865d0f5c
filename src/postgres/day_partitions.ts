/**
 * Tables that are partitioned by day (UTC). Partitions are created some days ahead, and a partition is dropped as a
 * whole once all its rows are past their age. Rows without a partition go into the default one, where they are
 * deleted row by row. A day with rows there gets no partition any more, so that no rows have to be moved.
 *
 * Any number of processes may do this at once: one at a time changes a table, and the others find it done. Nobody
 * waits longer than the bound on waiting for a lock; work that could not be done then is done later.
 */
import { type Pool, type Queryable, statement } from './pool.js';

export const day_ms = 86_400_000;
/** Number of days after today that have a partition. */
export const days_ahead = 3;
/** An arbitrary lock number, the same on every node. */
const advisory_lock = 7_261_530_115;

/** A table that is partitioned by day, and the length of its next partitions. */
export interface ByDay {
  readonly table: 'delivery_failures' | 'messages';
  /** The column that decides the partition of a row. */
  readonly column: 'at' | 'day';
  readonly days: number;
}

export const failuresByDay: ByDay = { table: 'delivery_failures', column: 'at', days: 1 };

/** Number of partitions that hold the messages of MESSAGE_DAYS. */
const message_partitions = 10;
/**
 * Days per partition if messages are kept for ever: few partitions even after decades, and still short enough if an
 * age is set later.
 */
const message_days_unbounded = 180;

/** Each partition covers a tenth of MESSAGE_DAYS, so that a message is kept for at most that much longer. */
export const messagesByDay = (messageDays: number | undefined): ByDay => ({
  table: 'messages',
  column: 'day',
  days: messageDays === undefined ? message_days_unbounded : Math.ceil(messageDays / message_partitions),
});

/** A partition other than the default one; its bounds are days since 1970. */
export interface Span {
  readonly name: string;
  /** First day. -Infinity for rows older than the partitioning of the table. */
  readonly from: number;
  /** Day after the last one. */
  readonly to: number;
}

const boundWait = statement('bound_wait', "set local lock_timeout = '1s'");
const claimDays = statement('claim_days', `select pg_advisory_xact_lock(${advisory_lock})`);

const dateOf = (day: number) => new Date(day * day_ms).toISOString().slice(0, 10);
const compact = (day: number) => dateOf(day).replaceAll('-', '');
const dayOf = (text: string) =>
  Date.UTC(Number(text.slice(0, 4)), Number(text.slice(4, 6)) - 1, Number(text.slice(6))) / day_ms;

/**
 * Name of a partition: it contains the first day and, for messages, whose partitions differ in length, the day after
 * the last one.
 */
const nameOf = (table: string, from: number, to: number) =>
  `${table}_${compact(from)}${table === 'messages' ? `_${compact(to)}` : ''}`;

/** Days of the partition with this name; undefined for the default partition. */
function spanOf(name: string): Span | undefined {
  const [, until] = /_until_(\d{8})$/.exec(name) ?? [];
  if (until !== undefined) return { name, from: Number.NEGATIVE_INFINITY, to: dayOf(until) };
  const [, first, next] = /_(\d{8})(?:_(\d{8}))?$/.exec(name) ?? [];
  if (first === undefined) return undefined;
  return { name, from: dayOf(first), to: next === undefined ? dayOf(first) + 1 : dayOf(next) };
}

export interface Spans {
  /** time of the database's clock in ms */
  readonly now: number;
  /** partitions in ascending order */
  readonly spans: readonly Span[];
}

export async function readSpans(sql: Queryable, { table }: Pick<ByDay, 'table'>): Promise<Spans> {
  const { rows } = await sql.query<{ now: number; names: readonly string[] }>(
    statement(
      `read_spans_${table}`,
      `select (extract(epoch from now()) * 1000)::bigint as now,
         array(select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent = '${table}'::regclass) as names`,
    ),
  );
  const [{ now, names } = { now: 0, names: [] }] = rows;
  const spans = names.map(spanOf).filter((span) => span !== undefined);
  return { now: Number(now), spans: spans.sort((a, b) => a.to - b.to) };
}

const holds = (spans: readonly Span[], day: number) => spans.some(({ from, to }) => from <= day && day < to);

/**
 * Runs `work` under a lock, with bounded waits, if `wanted` still holds. Returns false when another process has done
 * the work.
 */
function alone(
  pool: Pool,
  table: ByDay['table'],
  wanted: (spans: readonly Span[]) => boolean,
  work: (tx: Queryable) => Promise<boolean>,
) {
  return pool.transaction(async (tx) => {
    await tx.query(boundWait);
    await tx.query(claimDays);
    return wanted((await readSpans(tx, { table })).spans) && work(tx);
  });
}

/** Creates a partition. Returns false if it exists, or if the default partition has rows of these days. */
function make(pool: Pool, { table, column }: ByDay, first: number, next: number): Promise<boolean> {
  const name = nameOf(table, first, next);
  // Names the time zone, because Postgres would read a timestamp without one in the session's zone.
  const [from, to] = [first, next].map((day) => `${dateOf(day)}${column === 'at' ? ' 00:00+00' : ''}`);
  return alone(
    pool,
    table,
    (spans) => !holds(spans, first),
    async (tx) => {
      const strays = statement(
        `strays_${name}`,
        `select from ${table}_default where ${column} >= '${from}' and ${column} < '${to}' limit 1`,
      );
      if ((await tx.query(strays)).count > 0) return false;
      // Attaching a table takes a weaker lock than creating it as a partition.
      const room = table === 'messages' ? 'with (fillfactor = 90)' : '';
      await tx.query(
        statement(`make_${name}`, `create table ${name} (like ${table} including defaults) ${room}`),
      );
      await tx.query(
        statement(
          `attach_${name}`,
          `alter table ${table} attach partition ${name} for values from ('${from}') to ('${to}')`,
        ),
      );
      return true;
    },
  );
}

/**
 * Returns `held` when a lock was not available in time, and false when the default partition got a row of these days
 * meanwhile, which stays there.
 */
async function unlessHeld(work: Promise<boolean>): Promise<boolean | 'held'> {
  try {
    return await work;
  } catch (error) {
    const { code } = error as { readonly code?: string };
    if (code === '55P03') return 'held';
    if (code === '23514') return false;
    throw error;
  }
}

/**
 * Drops a partition with all its rows. Returns false when it did not exist or another session locked it; in the
 * second case a later call can succeed.
 */
export const dropSpan = async (pool: Pool, table: ByDay['table'], { name }: Span): Promise<boolean> =>
  (await unlessHeld(
    alone(
      pool,
      table,
      (spans) => spans.some((span) => span.name === name),
      async (tx) => {
        await tx.query(statement(`drop_${name}`, `drop table ${name}`));
        return true;
      },
    ),
  )) === true;

/** Whether all rows of a partition are past their age. */
export const isPast = ({ to }: Span, now: number, ageMs: number): boolean => to * day_ms <= now - ageMs;

/**
 * Number of consecutive days after today that have a partition other than the default one; less than `days_ahead` if
 * creating partitions has failed.
 */
export async function daysAhead(
  sql: Queryable,
  table: Pick<ByDay, 'table'> = failuresByDay,
): Promise<number> {
  const { now, spans } = await readSpans(sql, table);
  const today = Math.floor(now / day_ms);
  let ahead = 0;
  while (ahead < days_ahead && holds(spans, today + ahead + 1)) ahead++;
  return ahead;
}

/**
 * Partitions that were created and dropped, and the number of future days that have none because another session
 * locked the table.
 */
export interface KeptDays {
  readonly made: number;
  readonly dropped: number;
  readonly held: number;
}

/**
 * Creates the partitions of today and the next days, and drops those whose rows are all older than `ageMs`. Errors:
 * those of Postgres, including a name that is already used; changes made before the error stay.
 */
export async function keepDays(pool: Pool, ageMs: number, byDay: ByDay = failuresByDay): Promise<KeptDays> {
  const { now, spans } = await readSpans(pool, byDay);
  const today = Math.floor(now / day_ms);
  let [made, dropped, held] = [0, 0, 0];
  for (let day = today; day <= today + days_ahead; ) {
    const covering = spans.find(({ from, to }) => from <= day && day < to);
    if (covering) {
      day = covering.to;
      continue;
    }
    const later = spans.find(({ from }) => from > day)?.from ?? Number.POSITIVE_INFINITY;
    const next = Math.min(day + byDay.days, later);
    const done = await unlessHeld(make(pool, byDay, day, next));
    if (done === 'held') held++;
    else if (done) made++;
    // Days after one that has rows in the default partition may have none there.
    day = done === false ? day + 1 : next;
  }
  for (const span of spans)
    if (isPast(span, now, ageMs) && (await dropSpan(pool, byDay.table, span))) dropped++;
  return { made, dropped, held };
}

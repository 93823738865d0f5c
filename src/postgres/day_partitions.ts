/**
 * Maintains the tables that are partitioned by day (UTC). Creates partitions some days ahead. Drops a partition once
 * all its rows have passed their maximum age.
 *
 * A row whose day has no partition goes into the default partition, and is deleted there individually. A day that
 * already has rows in the default partition never gets its own partition, because those rows would have to be moved.
 *
 * Several processes may run this maintenance at the same time. Only one of them changes a table, and the others find
 * the work done. If a lock is not available in time, the work is repeated later.
 */
import { type Pool, type Queryable, statement } from './pool.js';

export const day_ms = 86_400_000;
export const days_ahead = 3;
/** The key of the advisory lock. It is an arbitrary number that must be equal on all nodes. */
const advisory_lock = 7_261_530_115;

export interface ByDay {
  readonly table: 'delivery_failures' | 'kept_updates' | 'messages';
  readonly column: 'at' | 'day';
  readonly days: number;
}

export const failuresByDay: ByDay = { table: 'delivery_failures', column: 'at', days: 1 };

export const keptByDay: ByDay = { table: 'kept_updates', column: 'at', days: 1 };

/** MESSAGE_DAYS is divided into this many partitions. */
const message_partitions = 10;
/**
 * The length of each partition in days if messages are kept forever. It is long enough that there are few partitions
 * even after decades, and short enough in case MESSAGE_DAYS is set later.
 */
const message_days_unbounded = 180;

/**
 * Returns how messages are partitioned. Each partition covers a tenth of MESSAGE_DAYS, so a message is deleted at most
 * a tenth of MESSAGE_DAYS too late.
 */
export const messagesByDay = (messageDays: number | undefined): ByDay => ({
  table: 'messages',
  column: 'day',
  days: messageDays === undefined ? message_days_unbounded : Math.ceil(messageDays / message_partitions),
});

/**
 * A partition other than the default partition. Contains the days from `from` up to but not including `to`, in days
 * since 1970.
 */
export interface Span {
  readonly name: string;
  /** The first day. -Infinity for the partition that contains the rows from before the table was partitioned. */
  readonly from: number;
  readonly to: number;
}

const boundWait = statement('bound_wait', "set local lock_timeout = '1s'");
const claimDays = statement('claim_days', `select pg_advisory_xact_lock(${advisory_lock})`);

const dateOf = (day: number) => new Date(day * day_ms).toISOString().slice(0, 10);
const compact = (day: number) => dateOf(day).replaceAll('-', '');
const dayOf = (text: string) =>
  Date.UTC(Number(text.slice(0, 4)), Number(text.slice(4, 6)) - 1, Number(text.slice(6))) / day_ms;

/**
 * Returns the name of a partition. The name contains the first day. The name of a message partition also contains the
 * day after the last day, because message partitions differ in length.
 */
const nameOf = (table: string, from: number, to: number) =>
  `${table}_${compact(from)}${table === 'messages' ? `_${compact(to)}` : ''}`;

function spanOf(name: string): Span | undefined {
  const [, until] = /_until_(\d{8})$/.exec(name) ?? [];
  if (until !== undefined) return { name, from: Number.NEGATIVE_INFINITY, to: dayOf(until) };
  const [, first, next] = /_(\d{8})(?:_(\d{8}))?$/.exec(name) ?? [];
  if (first === undefined) return undefined;
  return { name, from: dayOf(first), to: next === undefined ? dayOf(first) + 1 : dayOf(next) };
}

export interface Spans {
  /** The time of the database's clock in ms. */
  readonly now: number;
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
 * Runs `work` under a lock, and waits for the lock only for a limited time. If another process has already done the
 * work, `wanted` returns false. `work` then does not run, and the result is false.
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

/**
 * Creates a partition. Returns false if another partition already covers these days, or if the default partition
 * contains rows of these days.
 */
function make(pool: Pool, { table, column }: ByDay, first: number, next: number): Promise<boolean> {
  const name = nameOf(table, first, next);
  // Names the time zone explicitly, because Postgres would otherwise use the session's time zone.
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
      // Creates a table and then attaches it, because creating a partition directly takes a stronger lock.
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
 * Returns the result of `work`, or `held` if a lock was not available in time. Returns false if Postgres refuses the
 * new partition because the default partition has just received a row of the new partition's days.
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
 * Selects a row if rows of this table are being moved to this database. Partitions must not be dropped during a move,
 * because the posts and pins of their messages are erased only after the move.
 */
const isReceiving = (table: ByDay['table']) =>
  statement(
    `receives_${table}`,
    `select from pg_subscription_rel where srrelid = '${table}'::regclass limit 1`,
  );

/**
 * Drops a partition with all its rows. Returns false if the partition does not exist, if another session has locked it,
 * or if rows are being moved to this database. In the last two cases, a later call can succeed.
 */
export const dropSpan = async (pool: Pool, table: ByDay['table'], { name }: Span): Promise<boolean> =>
  (await unlessHeld(
    alone(
      pool,
      table,
      (spans) => spans.some((span) => span.name === name),
      async (tx) => {
        // With this lock, no other session can begin to move rows into the table.
        await tx.query(statement(`lock_${table}`, `lock table only ${table} in access exclusive mode`));
        if ((await tx.query(isReceiving(table))).count > 0) return false;
        await tx.query(statement(`drop_${name}`, `drop table ${name}`));
        return true;
      },
    ),
  )) === true;

export const isPast = ({ to }: Span, now: number, ageMs: number): boolean => to * day_ms <= now - ageMs;

function aheadIn({ now, spans }: Spans): number {
  const today = Math.floor(now / day_ms);
  let ahead = 0;
  while (ahead < days_ahead && holds(spans, today + ahead + 1)) ahead++;
  return ahead;
}

/**
 * Counts how many consecutive days after today have their own partition. The result is less than `days_ahead` if
 * partitions could not be created.
 */
export async function daysAhead(
  sql: Queryable,
  table: Pick<ByDay, 'table'> = failuresByDay,
): Promise<number> {
  return aheadIn(await readSpans(sql, table));
}

/**
 * How long a partition may exist after all its rows have expired, before it counts as overdue. Flushers normally drop
 * it within a minute.
 */
const drop_ms_max = 3_600_000;

export interface DaysState {
  /** Whether today has its own partition. */
  readonly today: boolean;
  /** How many days after today have their own partition (see `daysAhead`). */
  readonly ahead: number;
  /** The number of partitions whose rows have all been expired for at least an hour. */
  readonly overdue: number;
}

/** Checks the partitions of a table whose rows are kept for `ageMs`. */
export async function loadDaysState(
  sql: Queryable,
  table: Pick<ByDay, 'table'>,
  ageMs: number,
): Promise<DaysState> {
  const found = await readSpans(sql, table);
  const { now, spans } = found;
  return {
    today: holds(spans, Math.floor(now / day_ms)),
    ahead: aheadIn(found),
    overdue: spans.filter((span) => isPast(span, now, ageMs + drop_ms_max)).length,
  };
}

/**
 * How many partitions were created and dropped, and how many could not be created because another session had locked
 * the table.
 */
export interface KeptDays {
  readonly made: number;
  readonly dropped: number;
  readonly held: number;
}

/**
 * Creates the partitions of today and the next days, and drops the partitions whose rows are all older than `ageMs`.
 * Throws the errors of Postgres, for example if a name is already in use. Changes made before the error stay.
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
    // If the partition could not be created, tries the next day. The default partition may contain rows of this day
    // only.
    day = done === false ? day + 1 : next;
  }
  for (const span of spans)
    if (isPast(span, now, ageMs) && (await dropSpan(pool, byDay.table, span))) dropped++;
  return { made, dropped, held };
}

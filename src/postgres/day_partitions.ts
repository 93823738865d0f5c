/**
 * Tables in partitions by day (UTC): made some days ahead, and dropped in one piece when all in them is past its age. What no partition was
 * made for lies in the default one and ends there row by row: a day that has rows there gets no partition any more, so that none
 * are moved.
 *
 * Any number of processes may do this at once: one at a time changes a table, and the others find it done. Nobody is held up
 * for longer than the bound on waiting for a lock; what could not be done then is done another time.
 */
import { type Pool, type Queryable, statement } from './pool.js';

export const day_ms = 86_400_000;
/** Days after today that have a partition. */
export const days_ahead = 3;
/** Any number will do, as long as every node takes the same. */
const advisory_lock = 7_261_530_115;

/** A table by day, and how long its next partitions are. */
export interface ByDay {
  readonly table: 'delivery_failures' | 'messages';
  /** By which it is divided. */
  readonly column: 'at' | 'day';
  readonly days: number;
}

export const failuresByDay: ByDay = { table: 'delivery_failures', column: 'at', days: 1 };

/** So many partitions hold what is kept. */
const message_partitions = 10;
/** Where messages are kept for ever: few enough partitions in decades, and not too long should an age be set. */
const message_days_unbounded = 180;

/** A tenth of MESSAGE_DAYS each, so that a message is kept for at most that much longer. */
export const messagesByDay = (messageDays: number | undefined): ByDay => ({
  table: 'messages',
  column: 'day',
  days: messageDays === undefined ? message_days_unbounded : Math.ceil(messageDays / message_partitions),
});

/** A partition beside the default one; days since 1970. */
export interface Span {
  readonly name: string;
  /** -Infinity for what was there before partitions were. */
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

const boundWait = statement('bound_wait', "set local lock_timeout = '1s'");
const claimDays = statement('claim_days', `select pg_advisory_xact_lock(${advisory_lock})`);

const dateOf = (day: number) => new Date(day * day_ms).toISOString().slice(0, 10);
const compact = (day: number) => dateOf(day).replaceAll('-', '');
const dayOf = (text: string) =>
  Date.UTC(Number(text.slice(0, 4)), Number(text.slice(4, 6)) - 1, Number(text.slice(6))) / day_ms;

/** The name tells the first day; of messages, whose partitions differ in length, also the day after the last. */
const nameOf = (table: string, from: number, to: number) =>
  `${table}_${compact(from)}${table === 'messages' ? `_${compact(to)}` : ''}`;

/** Undefined for the default partition. */
function spanOf(name: string): Span | undefined {
  const [, until] = /_until_(\d{8})$/.exec(name) ?? [];
  if (until !== undefined) return { name, from: Number.NEGATIVE_INFINITY, to: dayOf(until) };
  const [, first, next] = /_(\d{8})(?:_(\d{8}))?$/.exec(name) ?? [];
  if (first === undefined) return undefined;
  return { name, from: dayOf(first), to: next === undefined ? dayOf(first) + 1 : dayOf(next) };
}

export interface Spans {
  /** ms, by the database's clock */
  readonly now: number;
  /** Ascending. */
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

/** Runs `work` alone, with a bound on its waits, also for the one that is at it. False when another process has done it. */
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

/** False as well when the default partition has rows of these days. */
function make(pool: Pool, { table, column }: ByDay, first: number, next: number): Promise<boolean> {
  const name = nameOf(table, first, next);
  // A timestamp without a zone would be taken in that of the session.
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
      // To attach a table holds up less than to make it a partition from the beginning.
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

/** `held` for a lock that did not come in time. A row that came to the default partition meanwhile is there to stay: nothing is done. */
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

/** Drops a partition with all that is in it. False when it was not there, or others held it; then it can be tried again. */
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

/** Whether all in a partition is past its age. */
export const isPast = ({ to }: Span, now: number, ageMs: number): boolean => to * day_ms <= now - ageMs;

/** Days in a row after today that have a partition, and others than the default one; less than `days_ahead` where making them has failed. */
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

/** What was done, and how many days to come have no partition because somebody held the table. */
export interface KeptDays {
  readonly made: number;
  readonly dropped: number;
  readonly held: number;
}

/**
 * Makes the partitions of today and the days to come, and drops those in which all is more than `ageMs` old.
 * Errors: what Postgres says, a name that something else has among it; what was done until then stays.
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
    // Days behind one that has rows in the default partition may have none there.
    day = done === false ? day + 1 : next;
  }
  for (const span of spans)
    if (isPast(span, now, ageMs) && (await dropSpan(pool, byDay.table, span))) dropped++;
  return { made, dropped, held };
}

/**
 * Partitions of `delivery_failures`, one for each day in UTC: made some days ahead, and dropped in one piece when all in them is past
 * its age. What no day was made for lies in the default partition and ends there row by row: a day that has rows there gets no
 * partition any more, so that none are moved.
 *
 * Any number of processes may do this at once: one at a time changes the table, and the others find it done. Nobody is held up
 * for longer than the bound on waiting for a lock; what could not be done then is done another time.
 */
import { type Pool, type Queryable, statement } from './pool.js';

const table = 'delivery_failures';
const day_ms = 86_400_000;
/** Days after today that have a partition. */
export const days_ahead = 3;
/** Any number will do, as long as every node takes the same. */
const advisory_lock = 7_261_530_115;

const readDays = statement(
  'read_days',
  `select (extract(epoch from now()) * 1000)::bigint as now,
     array(select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = '${table}'::regclass) as names`,
);
const boundWait = statement('bound_wait', "set local lock_timeout = '1s'");
const claimDays = statement('claim_days', `select pg_try_advisory_xact_lock(${advisory_lock}) as claimed`);

const nameOf = (day: number) =>
  `${table}_${new Date(day * day_ms).toISOString().slice(0, 10).replaceAll('-', '')}`;
const startOf = (day: number) => new Date(day * day_ms).toISOString();

/** The day of a partition; undefined for the default one. */
function dayOf(name: string): number | undefined {
  const [, year, month, date] = /_(\d{4})(\d\d)(\d\d)$/.exec(name) ?? [];
  return year === undefined ? undefined : Date.UTC(Number(year), Number(month) - 1, Number(date)) / day_ms;
}

interface Days {
  /** ms, by the database's clock */
  readonly now: number;
  readonly days: ReadonlySet<number>;
}

async function read(sql: Queryable): Promise<Days> {
  const { rows } = await sql.query<{ now: number; names: readonly string[] }>(readDays);
  const [{ now, names } = { now: 0, names: [] }] = rows;
  return { now: Number(now), days: new Set(names.map(dayOf).filter((day) => day !== undefined)) };
}

/** Runs `work` alone and with a bound on its waits. False when another process is at it, or has done it. */
function alone(pool: Pool, wanted: (state: Days) => boolean, work: (tx: Queryable) => Promise<boolean>) {
  return pool.transaction(async (tx) => {
    await tx.query(boundWait);
    const { rows } = await tx.query<{ claimed: boolean }>(claimDays);
    return rows[0]?.claimed === true && wanted(await read(tx)) && work(tx);
  });
}

/** False as well when the default partition has rows of the day. */
function make(pool: Pool, day: number): Promise<boolean> {
  const [name, from, to] = [nameOf(day), startOf(day), startOf(day + 1)];
  return alone(
    pool,
    ({ days }) => !days.has(day),
    async (tx) => {
      const strays = statement(
        `strays_${name}`,
        `select from ${table}_default where at >= '${from}' and at < '${to}' limit 1`,
      );
      if ((await tx.query(strays)).count > 0) return false;
      // To attach a table holds up less than to make it a partition from the beginning.
      await tx.query(statement(`make_${name}`, `create table ${name} (like ${table} including defaults)`));
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

const drop = (pool: Pool, day: number): Promise<boolean> =>
  alone(
    pool,
    ({ days }) => days.has(day),
    async (tx) => {
      await tx.query(statement(`drop_${nameOf(day)}`, `drop table ${nameOf(day)}`));
      return true;
    },
  );

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

/** Days in a row after today that have a partition: less than `days_ahead` where making them has failed. */
export async function daysAhead(sql: Queryable): Promise<number> {
  const { now, days } = await read(sql);
  const today = Math.floor(now / day_ms);
  let ahead = 0;
  while (days.has(today + ahead + 1)) ahead++;
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
export async function keepDays(pool: Pool, ageMs: number): Promise<KeptDays> {
  const { now, days } = await read(pool);
  const today = Math.floor(now / day_ms);
  let [made, dropped, held] = [0, 0, 0];
  for (let day = today; day <= today + days_ahead; day++) {
    const done = !days.has(day) && (await unlessHeld(make(pool, day)));
    if (done === 'held') held++;
    else if (done) made++;
  }
  for (const day of days)
    if ((day + 1) * day_ms <= now - ageMs && (await unlessHeld(drop(pool, day))) === true) dropped++;
  return { made, dropped, held };
}

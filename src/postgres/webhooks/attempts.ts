/** SQL statements for the attempts to deliver updates to webhooks. */
import { ruleLimits as limits } from '../../rules/limits.js';
import { isDataError } from '../pool.js';
import { type Database, type Sql, seconds } from '../sql.js';
import type { Failure } from './failing.js';

export interface NewAttempt {
  readonly bot: number;
  /** The slot of the route, or 0 for the bot's webhook. */
  readonly slot: number;
  readonly updateId: number;
  /** The Unix time in ms at which the attempt was made. */
  readonly at: number;
  readonly delivered: boolean;
  readonly status: number | null;
  readonly error: string | null;
  readonly latencyMs: number;
  /** The first 1 KiB of the receiver's answer, with secrets masked. */
  readonly answer: string;
  readonly tries: number;
  /** The Unix time in ms of the next planned attempt. Null if no further attempt is planned. */
  readonly nextTryAt: number | null;
  /** Why this was the last attempt. Null after a success, or if another attempt follows. */
  readonly dead: string | null;
  /** The update in packed form, or null if it cannot be delivered again. */
  readonly record: Buffer | null;
}

export interface AttemptCounts {
  readonly delivered: number;
  readonly failed: number;
  readonly dead: number;
  /** The number of failures that were counted but not stored. */
  readonly unkept: number;
}

const time = (ms: number | null) => ms && new Date(ms);

/** An attempt that Postgres refuses because of its data. */
export interface RefusedAttempt {
  readonly bot: number;
  readonly updateId: number;
  readonly reason: string;
}

const insertAttempts = (sql: Sql, attempts: readonly NewAttempt[]) => {
  const column = <T>(read: (attempt: NewAttempt) => T) => attempts.map(read);
  return sql.query(
    // Assigns ids in the order of the given attempts. Successes and failures take their ids from the same sequence.
    `with given as materialized (
       select nextval('delivery_attempts_id_seq') as id, a.* from unnest($1::bigint[], $2::bigint[],
         $3::timestamptz[], $4::boolean[], $5::int[], $6::text[], $7::int[], $8::text[], $9::int[],
         $10::timestamptz[], $11::text[], $12::bytea[], $13::smallint[]) as a
         (bot_id, update_id, at, delivered, status, error, latency_ms, answer, tries, next_try_at, dead, record, slot)
     ), successes as (
       insert into delivery_attempts (id, bot_id, update_id, at, delivered, status, error, latency_ms, answer, tries,
           next_try_at, dead, record, slot)
         overriding system value select * from given where delivered
     ) insert into delivery_failures
         (id, bot_id, update_id, at, status, error, latency_ms, answer, tries, next_try_at, dead, slot)
       select id, bot_id, update_id, at, status, error, latency_ms, answer, tries, next_try_at, dead, slot
         from given where not delivered`,
    [
      ...[column((a) => a.bot), column((a) => a.updateId), column((a) => time(a.at))],
      ...[column((a) => a.delivered), column((a) => a.status), column((a) => a.error)],
      ...[column((a) => a.latencyMs), column((a) => a.answer), column((a) => a.tries)],
      ...[column((a) => time(a.nextTryAt)), column((a) => a.dead), column((a) => a.record)],
      column((a) => a.slot),
    ],
  );
};

/**
 * Inserts attempts. Halves a refused batch until each refused attempt is alone. Returns the refused attempts and the
 * reasons.
 */
async function insertApart(
  sql: Sql,
  attempts: readonly NewAttempt[],
): Promise<ReadonlyMap<NewAttempt, string>> {
  await sql.run`savepoint attempts`;
  try {
    await insertAttempts(sql, attempts);
    await sql.run`release savepoint attempts`;
    return new Map();
  } catch (error) {
    if (!isDataError(error)) throw error;
    await sql.run`rollback to savepoint attempts`;
    await sql.run`release savepoint attempts`;
    if (attempts.length === 1) return new Map([[attempts[0] as NewAttempt, (error as Error).message]]);
    const middle = attempts.length >> 1;
    const first = await insertApart(sql, attempts.slice(0, middle));
    return new Map([...first, ...(await insertApart(sql, attempts.slice(middle)))]);
  }
}

/** Adds failed attempts that Postgres refused to the count of failures that were not stored. */
function countRefused(
  counts: ReadonlyMap<number, AttemptCounts>,
  refused: Iterable<NewAttempt>,
): ReadonlyMap<number, AttemptCounts> {
  const counted = new Map(counts);
  for (const { bot, delivered } of refused) {
    const own = counted.get(bot);
    if (own && !delivered) counted.set(bot, { ...own, unkept: own.unkept + 1 });
  }
  return counted;
}

/**
 * Stores the attempts of one shard and adds them to the counts of their bots, in one transaction. Keeps only the last
 * limits.delivery_successes_kept successes of each bot. Attempts that Postgres refuses because of their data are
 * counted but not stored, so that they do not delay the others. Returns the refused attempts.
 */
export async function appendAttempts(
  db: Database,
  attempts: readonly NewAttempt[],
  counts: ReadonlyMap<number, AttemptCounts>,
): Promise<readonly RefusedAttempt[]> {
  try {
    await db.transaction(async (sql) => {
      await insertAttempts(sql, attempts);
      await countAttempts(sql, attempts, counts);
    });
    return [];
  } catch (error) {
    if (!isDataError(error)) throw error;
  }
  const refused = await db.transaction(async (sql) => {
    const found = await insertApart(sql, attempts);
    const kept = attempts.filter((attempt) => !found.has(attempt));
    await countAttempts(sql, kept, countRefused(counts, found.keys()));
    return found;
  });
  return [...refused].map(([{ bot, updateId }, reason]) => ({ bot, updateId, reason }));
}

async function countAttempts(
  sql: Sql,
  attempts: readonly NewAttempt[],
  counts: ReadonlyMap<number, AttemptCounts>,
): Promise<void> {
  // Sorts the rows so that two workers cannot deadlock.
  const rows = [...counts].sort(([a], [b]) => a - b);
  await sql.query(
    `insert into delivery_counts as c (bot_id, delivered, failed, dead, unkept)
     select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
     on conflict (bot_id) do update set delivered = c.delivered + excluded.delivered,
       failed = c.failed + excluded.failed, dead = c.dead + excluded.dead, unkept = c.unkept + excluded.unkept`,
    [
      rows.map(([bot]) => bot),
      ...(['delivered', 'failed', 'dead', 'unkept'] as const).map((name) => rows.map(([, c]) => c[name])),
    ],
  );
  const succeeded = [...new Set(attempts.filter((a) => a.delivered).map((a) => a.bot))];
  await sql.run`
    delete from delivery_attempts a using unnest(${succeeded}::bigint[]) as bots (id)
    where a.bot_id = bots.id and a.delivered and a.id <= (
      select b.id from delivery_attempts b where b.bot_id = bots.id and b.delivered
       order by b.id desc offset ${limits.delivery_successes_kept} limit 1)`;
}

export function failuresOf(
  attempts: readonly Omit<NewAttempt, 'slot'>[],
  counts: ReadonlyMap<number, AttemptCounts>,
): Failure[] {
  const failed = new Set(
    [...counts].filter(([, { delivered, failed }]) => failed > 0 && delivered === 0).map(([bot]) => bot),
  );
  const found = new Map<number, Failure>();
  for (const { bot, at, error } of attempts) {
    if (failed.has(bot) && error !== null)
      found.set(bot, { bot, at: Math.min(at, found.get(bot)?.at ?? at), error });
  }
  return [...found.values()];
}

export interface AttemptRow {
  readonly id: number;
  readonly update_id: number;
  /** The Unix time in seconds at which the attempt was made. */
  readonly at: number;
  readonly delivered: boolean;
  readonly status: number | null;
  readonly error: string | null;
  readonly latency_ms: number;
  readonly answer: string;
  readonly tries: number;
  /** The Unix time in seconds for which the next attempt was planned. Null if no further attempt was planned. */
  readonly next_try_at: number | null;
  readonly dead: string | null;
  readonly slot: number;
}

export interface AttemptFilter {
  /**
   * Whether to leave out attempts from before the current owner got the bot. The filter is only as precise as the
   * clocks of the machines.
   */
  readonly ofOwner: boolean;
  readonly updateId: number | null;
  readonly delivered: boolean | null;
  readonly status: number | null;
}

export const loadAttempts = (
  sql: Sql,
  bot: number,
  { updateId, delivered, status }: AttemptFilter,
  before: number,
  limit: number,
  since: Date | null = null,
) => sql.rows<AttemptRow>`
  select id, update_id, ${seconds('at')} as at, delivered, status, error, latency_ms, answer, tries,
    ${seconds('next_try_at')} as next_try_at, dead, slot
  from (
    select bot_id, id, update_id, at, delivered, status, error, latency_ms, answer, tries, next_try_at, dead, slot
    from delivery_attempts
    union all
    select bot_id, id, update_id, at, false, status, error, latency_ms, answer, tries, next_try_at, dead, slot
    from delivery_failures) a
  where bot_id = ${bot} and id < ${before} and (${updateId}::bigint is null or update_id = ${updateId})
    and (${delivered}::boolean is null or delivered = ${delivered})
    and (${status}::int is null or status = ${status})
    and (${since}::timestamptz is null or at >= ${since})
  order by id desc limit ${limit}`;

export const loadCounts = (sql: Sql, bot: number) => sql.one<AttemptCounts>`
  select coalesce(sum(delivered), 0)::bigint as delivered, coalesce(sum(failed), 0)::bigint as failed,
    coalesce(sum(dead), 0)::bigint as dead, coalesce(sum(unkept), 0)::bigint as unkept
  from delivery_counts where bot_id = ${bot}`;

/** The attempts of one queue with the same outcome, counted over the last hour. */
export interface OutcomeRow {
  readonly slot: number;
  readonly delivered: boolean;
  /** The HTTP status if the attempt failed. Null if the attempt succeeded or the receiver did not answer. */
  readonly status: number | null;
  /** The error message if the attempt failed. Null if the attempt succeeded. */
  readonly error: string | null;
  readonly count: number;
  /** The time of the last attempt, as Unix time in seconds. */
  readonly last: number;
  readonly p50: number;
  readonly p99: number;
  /** The length in seconds of the period to which the counted attempts belong. */
  readonly seconds: number;
}

/**
 * Loads the outcomes of the last hour, the most frequent first. Reads only the last limits.delivery_successes_kept
 * successes and limits.delivery_failures_looked_at_max failures. If the hour has more attempts, `seconds` is the time
 * since the oldest attempt that was read.
 */
export const loadOutcomes = (sql: Sql, bot: number) => sql.rows<OutcomeRow>`
  with looked_at as materialized (
    (select slot, true as delivered, null::int as status, null::text as error, latency_ms, at
     from delivery_attempts where bot_id = ${bot} and delivered and at > now() - interval '1 hour'
     order by id desc limit ${limits.delivery_successes_kept})
    union all
    (select slot, false, status, error, latency_ms, at
     from delivery_failures where bot_id = ${bot} and at > now() - interval '1 hour'
     order by id desc limit ${limits.delivery_failures_looked_at_max})
  ), spans as (
    select delivered, case
      when count(*) >= case when delivered then ${limits.delivery_successes_kept}::int
                            else ${limits.delivery_failures_looked_at_max}::int end
      then greatest(1, extract(epoch from now() - min(at))) else 3600 end::float8 as seconds
    from looked_at group by delivered
  ) select slot, delivered, status, error, count(*) as count, ${seconds('max(at)')} as last,
    percentile_disc(0.5) within group (order by latency_ms) as p50,
    percentile_disc(0.99) within group (order by latency_ms) as p99, seconds
  from looked_at join spans using (delivered)
  group by slot, delivered, status, error, seconds
  order by count(*) desc, slot, status, error limit ${limits.delivery_outcomes_max}`;

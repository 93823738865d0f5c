/**
 * SQL statements for replays of stored updates into a webhook (decision 0081). A replay is open until its queue
 * in Redis is closed.
 */
import { type Database, fragment, type Sql } from '../sql.js';

export interface ReplayRow {
  readonly id: number;
  readonly bot: number;
  /** The slot of the route that gets the updates, or 0 for the bot's webhook. */
  readonly slot: number;
  readonly from: number;
  /** Updates from before this Unix time (in seconds) are not replayed. Null if the replay begins at an update id. */
  readonly fromTime: number | null;
  readonly last: number;
  /** The Unix times in seconds at which the replay started and ended. */
  readonly started: number;
  readonly ended: number | null;
  readonly cancelled: boolean;
  readonly closed: boolean;
  /** The figures `reached`, `fed` and `dead` are stored when the replay ends. */
  readonly reached: number | null;
  readonly fed: number;
  readonly dead: number;
}

export type NewReplay = Pick<ReplayRow, 'bot' | 'slot' | 'from' | 'fromTime' | 'last'>;

const columns = fragment(`id, bot_id as bot, slot, from_update_id as "from",
  extract(epoch from from_time)::bigint as "fromTime", last_update_id as "last",
  extract(epoch from started_at)::bigint as started, extract(epoch from ended_at)::bigint as ended,
  cancelled, closed, reached, fed, dead`);

/**
 * Starts a replay. Keeps only the bot's `kept` newest replays. Returns null if another replay of the bot is open, or if
 * the bot was deleted.
 */
export function insertReplay(
  db: Database,
  { bot, slot, from, fromTime, last }: NewReplay,
  kept: number,
): Promise<ReplayRow | null> {
  return db.transaction(async (sql) => {
    // Looks for an open replay first, because an insert that is refused would use up an id.
    if (!(await sql.some`select 1 from bots where id = ${bot} and deleted_at is null for update`))
      return null;
    if (await sql.some`select 1 from history_replays where bot_id = ${bot} and not closed`) return null;
    const made = await sql.first<ReplayRow>`
      insert into history_replays (bot_id, slot, from_update_id, from_time, last_update_id)
      values (${bot}, ${slot}, ${from}, to_timestamp(${fromTime}::bigint), ${last})
      on conflict do nothing returning ${columns}`;
    await sql.run`
      delete from history_replays where bot_id = ${bot} and closed and id <= (
        select id from history_replays where bot_id = ${bot} order by id desc offset ${kept} limit 1)`;
    return made;
  });
}

/**
 * Loads the replays of a bot, newest first. Leaves out replays from before `since`, because an earlier owner started
 * them.
 */
export const loadReplays = (sql: Sql, bot: number, since: Date, limit: number) => sql.rows<ReplayRow>`
  select ${columns} from history_replays where bot_id = ${bot} and started_at >= ${since}
  order by id desc limit ${limit}`;

export const loadRunning = (sql: Sql, bot: number) => sql.first<ReplayRow>`
  select ${columns} from history_replays where bot_id = ${bot} and ended_at is null`;

/** Loads an ended replay for which the bot's queue in Redis is not closed yet. */
export const loadUnclosed = (sql: Sql, bot: number) => sql.first<ReplayRow>`
  select ${columns} from history_replays where bot_id = ${bot} and ended_at is not null and not closed`;

/** Returns whether the owner who started a replay still has the bot. */
export const isOfOwner = (sql: Sql, id: number): Promise<boolean> => sql.some`
  select 1 from history_replays r join bots b on b.id = r.bot_id where r.id = ${id} and r.started_at >= b.owned_since`;

/** Ends a replay. The caller must then close the replay's queue. Returns false if the replay had already ended. */
export const endReplay = (
  sql: Sql,
  bot: number,
  id: number,
  cancelled: boolean,
  { reached, fed, dead }: { readonly reached: number | null; readonly fed: number; readonly dead: number },
) => sql.some`
  update history_replays set ended_at = now(), cancelled = ${cancelled}, reached = ${reached}, fed = ${fed},
    dead = ${dead}
  where bot_id = ${bot} and id = ${id} and ended_at is null returning 1`;

export const closeReplay = (sql: Sql, id: number) => sql.run`
  update history_replays set closed = true where id = ${id} and ended_at is not null`;

/** Claims open replays, except those that another process has claimed. */
export const claimReplays = (sql: Sql, limit: number, forMs: number) => sql.rows<ReplayRow>`
  update history_replays set claimed_until = now() + ${forMs}::bigint * interval '1 millisecond'
  where id in (
    select id from history_replays where not closed and claimed_until <= now()
    order by claimed_until limit ${limit} for update skip locked)
  returning ${columns}`;

export const releaseReplay = (sql: Sql, id: number) => sql.run`
  update history_replays set claimed_until = now() where id = ${id}`;

export interface StoredUpdate {
  readonly id: number;
  readonly record: Buffer;
}

export interface StoredRange {
  readonly after: number;
  readonly last: number;
  /** The replay includes only updates that were delivered or given up at this time or later. */
  readonly since: Date;
  /** The time since which the bot has had its present owner. */
  readonly owned: Date;
}

/**
 * Loads the next stored updates: dead letters, and the newest delivered updates (with `UPDATES_DAYS`, all delivered
 * updates). Returns each update once, even if it is stored several times.
 */
export const loadStored = (
  sql: Sql,
  bot: number,
  { after, last, since, owned }: StoredRange,
  limit: number,
) => sql.rows<StoredUpdate>`
  select distinct on (id) id, record from (
    (select update_id as id, record from dead_updates
      where bot_id = ${bot} and update_id > ${after} and update_id <= ${last} and record is not null
        and created_at >= ${since}
      order by update_id limit ${limit})
    union all
    (select distinct on (update_id) update_id, record from delivery_attempts
      where bot_id = ${bot} and update_id > ${after} and update_id <= ${last} and record is not null
        and delivered and at >= ${since} and at >= ${owned}
      order by update_id, id desc limit ${limit})
    union all
    (select distinct on (update_id) update_id, record from kept_updates
      where bot_id = ${bot} and update_id > ${after} and update_id <= ${last}
        and at >= ${since} and at >= ${owned}
      order by update_id, at limit ${limit})
  ) as found order by id limit ${limit}`;

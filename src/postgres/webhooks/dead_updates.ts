/**
 * SQL statements for undelivered updates (dead letters), and for updates that are delivered again. A dead letter
 * that leaves the list becomes a tombstone with the same version. Without the tombstone, the row would return if a
 * journal batch were written again.
 */
import type { AuditActor } from '../bots/audit.js';
import type { Database, Sql } from '../sql.js';

/** Selects the updates of one route. */
export interface RouteRows {
  /**
   * The bytes with which the record of every dead letter of the route ends. They identify these dead letters, because
   * all other records end with another field.
   */
  readonly dead: Buffer;
  /** The last bytes in the record of each update that was delivered to the route. */
  readonly delivered: Buffer;
  /** Rows from before this time are excluded, because they belong to a deleted route. */
  readonly since: Date;
}

export interface DeadRow {
  readonly update_id: number;
  readonly record: Buffer;
}

/**
 * Loads the dead letters of a bot with ids greater than `after`, oldest first. Returns up to `limit` rows and up to
 * `bytes` bytes in total, but at least one row, and whether more rows follow. With `route`, loads only the dead letters
 * of this route.
 */
export async function loadDead(
  sql: Sql,
  bot: number,
  after: number,
  limit: number,
  bytes: number,
  route: RouteRows | null = null,
): Promise<{ readonly rows: readonly DeadRow[]; readonly more: boolean }> {
  const [end, made] = [route?.dead ?? null, route?.since ?? null];
  // Loads one row more than needed, to find out whether more rows follow.
  const found = await sql.rows<DeadRow & { readonly fits: boolean }>`
    select update_id, record, place <= ${limit} and (place = 1 or total <= ${bytes}) as fits from (
      select update_id, record, octet_length(record) as size, row_number() over read as place,
        sum(octet_length(record)) over read as total
      from (select update_id, record from dead_updates
        where bot_id = ${bot} and update_id > ${after} and record is not null
          and (${end}::bytea is null or created_at >= ${made}::timestamptz
            and substring(record from octet_length(record) - octet_length(${end}::bytea) + 1) = ${end}::bytea)
        order by update_id limit ${limit} + 1) d
      window read as (order by update_id)) d
    where place <= 2 or total - size <= ${bytes} order by update_id`;
  const rows = found.filter(({ fits }) => fits);
  return { rows, more: rows.length < found.length };
}

export const countDead = (sql: Sql, bot: number) => sql.value<number>`
  select count(*) as count from dead_updates where bot_id = ${bot} and record is not null`;

export function discardDead(
  db: Database,
  bot: number,
  limit: number,
  route: RouteRows | null = null,
): Promise<number> {
  const [end, made] = [route?.dead ?? null, route?.since ?? null];
  return db.transaction(async (sql) => {
    const ids = await sql.column<number>`
      select update_id from dead_updates where bot_id = ${bot} and record is not null
        and (${end}::bytea is null or created_at >= ${made}::timestamptz
          and substring(record from octet_length(record) - octet_length(${end}::bytea) + 1) = ${end}::bytea)
      order by update_id limit ${limit} for update`;
    await sql.run`
      update dead_updates set record = null, deleted_at = now()
      where bot_id = ${bot} and update_id = any(${ids})`;
    return ids.length;
  });
}

export interface TakenReplay {
  readonly id: number;
  readonly updateIds: readonly number[];
}

export interface Replay extends TakenReplay {
  readonly records: readonly Buffer[];
  /** Who started the replay. Null once the audit log has an entry for the replay. */
  readonly note: AuditActor | null;
}

export interface ReplayRange {
  readonly from: number;
  readonly to: number;
  /** Whether to include delivered updates that are still stored. */
  readonly delivered: boolean;
  /** Updates that were delivered before this time are excluded. */
  readonly since: Date | null;
  readonly route: RouteRows | null;
}

/**
 * Takes up to `limit` updates of a bot for redelivery, oldest first, from the start of the range. Takes dead letters,
 * which then leave the list of dead letters. With `delivered`, also takes stored updates that were delivered. Returns
 * null if the range has no updates. If `note` is set, adds an entry to the audit log.
 */
export function takeReplay(
  db: Database,
  bot: number,
  { from, to, delivered, since, route }: ReplayRange,
  limit: number,
  note: AuditActor | null = null,
): Promise<TakenReplay | null> {
  const [deadEnd, end, made] = [route?.dead ?? null, route?.delivered ?? null, route?.since ?? null];
  return db.transaction(async (sql) => {
    const rows = await sql.rows<DeadRow & { readonly dead: boolean }>`
      with letters as materialized (
        select update_id, record, true as dead from dead_updates
        where bot_id = ${bot} and update_id between ${from} and ${to} and record is not null
          and (${deadEnd}::bytea is null or created_at >= ${made}::timestamptz
            and substring(record from octet_length(record) - octet_length(${deadEnd}::bytea) + 1) = ${deadEnd}::bytea)
        order by update_id limit ${limit} for update
      ) select update_id, record, dead from (
        (table letters)
        union all
        (select distinct on (update_id) update_id, record, false from delivery_attempts
          where bot_id = ${bot} and update_id between ${from} and ${to} and record is not null
            and delivered and ${delivered}
            and (${end}::bytea is null or at >= ${made}::timestamptz
              and substring(record from octet_length(record) - octet_length(${end}::bytea) + 1) = ${end}::bytea)
            and (${since}::timestamptz is null or at >= ${since})
          order by update_id, id desc limit ${limit})
      ) as found order by update_id, dead desc limit ${limit}`;
    if (rows.length === 0) return null;
    await sql.run`
      update dead_updates set record = null, deleted_at = now()
      where bot_id = ${bot} and record is not null
        and update_id = any(${rows.filter(({ dead }) => dead).map((row) => row.update_id)})`;
    // Removes duplicates, because an update may be stored both as a dead letter and as a delivery.
    const once = [...new Map(rows.map((row) => [row.update_id, row])).values()];
    const updateIds = once.map((row) => row.update_id);
    const id = await sql.value<number>`
      insert into webhook_replays (bot_id, records, update_ids, note)
      values (${bot}, ${once.map(({ record }) => record)}, ${updateIds}, ${note && JSON.stringify(note)})
      returning id`;
    return { id, updateIds };
  });
}

export const loadReplay = (sql: Sql, bot: number, id: number) => sql.first<Replay>`
  select id, update_ids as "updateIds", records, note from webhook_replays
  where bot_id = ${bot} and id = ${id}`;

export const replayNoted = (sql: Sql, bot: number, id: number) => sql.run`
  update webhook_replays set note = null where bot_id = ${bot} and id = ${id}`;

export const finishReplay = (sql: Sql, bot: number, id: number) => sql.run`
  delete from webhook_replays where bot_id = ${bot} and id = ${id}`;

export const dropReplays = (sql: Sql, bot: number) => sql.run`
  delete from webhook_replays where bot_id = ${bot}`;

export const loadOldReplays = (sql: Sql, ageMs: number, limit: number) =>
  sql.rows<{ readonly bot: number; readonly id: number }>`
    select bot_id as bot, id from webhook_replays
    where created_at < now() - ${ageMs}::bigint * interval '1 millisecond' limit ${limit}`;

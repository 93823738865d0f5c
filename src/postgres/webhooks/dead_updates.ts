/**
 * Statements on undelivered updates (dead letters), and on updates to be delivered again. A row that is taken stays
 * as a tombstone of the same version, so that a journal batch that is written again does not bring it back.
 */
import type { AuditActor } from '../bots/audit.js';
import { type Database, one, type Sql } from '../sql.js';

export interface DeadRow {
  readonly update_id: number;
  readonly record: Buffer;
}

/**
 * Dead letters of a bot with ids greater than `after`, oldest first: up to `limit` and up to `bytes`, but at least
 * one. Also returns whether more follow.
 */
export async function loadDead(
  sql: Sql,
  bot: number,
  after: number,
  limit: number,
  bytes: number,
): Promise<{ readonly rows: readonly DeadRow[]; readonly more: boolean }> {
  // Reads one row more than needed to find out whether more follow.
  const found = await sql.query<DeadRow & { readonly fits: boolean }>(
    `select update_id, record, place <= $3 and (place = 1 or total <= $4) as fits from (
       select update_id, record, octet_length(record) as size, row_number() over read as place,
              sum(octet_length(record)) over read as total
         from (select update_id, record from dead_updates
                where bot_id = $1 and update_id > $2 and record is not null order by update_id limit $3 + 1) d
       window read as (order by update_id)) d
      where place <= 2 or total - size <= $4 order by update_id`,
    [bot, after, limit, bytes],
  );
  const rows = found.filter(({ fits }) => fits);
  return { rows, more: rows.length < found.length };
}

export async function countDead(sql: Sql, bot: number): Promise<number> {
  const { count } = await one<{ count: number }>(
    sql,
    'select count(*) as count from dead_updates where bot_id = $1 and record is not null',
    [bot],
  );
  return count;
}

/** Removes dead letters of a bot, at most `limit`; returns how many. */
export function discardDead(db: Database, bot: number, limit: number): Promise<number> {
  return db.transaction(async (sql) => {
    const found = await sql.query<{ readonly update_id: number }>(
      `select update_id from dead_updates where bot_id = $1 and record is not null
        order by update_id limit $2 for update`,
      [bot, limit],
    );
    const ids = found.map((row) => row.update_id);
    await sql.query(
      'update dead_updates set record = null, deleted_at = now() where bot_id = $1 and update_id = any($2)',
      [bot, ids],
    );
    return ids.length;
  });
}

/** Updates that one step of a replay puts back into a queue. */
export interface TakenReplay {
  readonly id: number;
  readonly updateIds: readonly number[];
}

export interface Replay extends TakenReplay {
  readonly records: readonly Buffer[];
  /** The actor that started the replay, until the audit log has an entry for it; null afterwards. */
  readonly note: AuditActor | null;
}

export interface ReplayRange {
  readonly from: number;
  readonly to: number;
  /** whether to include delivered updates, as far as they are stored */
  readonly delivered: boolean;
  /** earliest delivery time of delivered updates to include */
  readonly since: Date | null;
}

/**
 * Takes updates of a bot to be delivered again, at most `limit` from the start of the range, oldest first: dead
 * letters, which are then no longer dead letters, and delivered updates. Null when there are none. `note` names the
 * actor if the audit log needs an entry.
 */
export function takeReplay(
  db: Database,
  bot: number,
  { from, to, delivered, since }: ReplayRange,
  limit: number,
  note: AuditActor | null = null,
): Promise<TakenReplay | null> {
  return db.transaction(async (sql) => {
    const rows = await sql.query<DeadRow & { readonly dead: boolean }>(
      `with letters as materialized (
         select update_id, record, true as dead from dead_updates
          where bot_id = $1 and update_id between $2 and $3 and record is not null
          order by update_id limit $5 for update
       ) select update_id, record, dead from (
         (table letters)
         union all
         (select distinct on (update_id) update_id, record, false from delivery_attempts
           where bot_id = $1 and update_id between $2 and $3 and record is not null and delivered and $4
             and ($6::timestamptz is null or at >= $6)
           order by update_id, id desc limit $5)
       ) as found order by update_id, dead desc limit $5`,
      [bot, from, to, delivered, limit, since],
    );
    if (rows.length === 0) return null;
    await sql.query(
      `update dead_updates set record = null, deleted_at = now()
        where bot_id = $1 and update_id = any($2) and record is not null`,
      [bot, rows.filter(({ dead }) => dead).map((row) => row.update_id)],
    );
    // An update that is both a dead letter and a recorded delivery is sent only once.
    const once = [...new Map(rows.map((row) => [row.update_id, row])).values()];
    const updateIds = once.map((row) => row.update_id);
    const { id } = await one<{ id: number }>(
      sql,
      'insert into webhook_replays (bot_id, records, update_ids, note) values ($1, $2, $3, $4) returning id',
      [bot, once.map(({ record }) => record), updateIds, note && JSON.stringify(note)],
    );
    return { id, updateIds };
  });
}

/** An unfinished replay; null when it is finished. */
export async function loadReplay(sql: Sql, bot: number, id: number): Promise<Replay | null> {
  const [row] = await sql.query<{
    readonly update_ids: number[];
    readonly records: Buffer[];
    readonly note: AuditActor | null;
  }>('select update_ids, records, note from webhook_replays where bot_id = $1 and id = $2', [bot, id]);
  return row ? { id, updateIds: row.update_ids, records: row.records, note: row.note } : null;
}

/** Records that the audit log has an entry for a replay. */
export async function replayNoted(sql: Sql, bot: number, id: number): Promise<void> {
  await sql.query('update webhook_replays set note = null where bot_id = $1 and id = $2', [bot, id]);
}

export async function finishReplay(sql: Sql, bot: number, id: number): Promise<void> {
  await sql.query('delete from webhook_replays where bot_id = $1 and id = $2', [bot, id]);
}

/** Deletes the replays of a deleted bot. */
export async function dropReplays(sql: Sql, bot: number): Promise<void> {
  await sql.query('delete from webhook_replays where bot_id = $1', [bot]);
}

/** Replays that were started more than `ageMs` ago, in no particular order. */
export function loadOldReplays(
  sql: Sql,
  ageMs: number,
  limit: number,
): Promise<Array<{ readonly bot: number; readonly id: number }>> {
  return sql.query(
    `select bot_id as bot, id from webhook_replays
      where created_at < now() - $1::bigint * interval '1 millisecond' limit $2`,
    [ageMs, limit],
  );
}

/** Statements by which operators find the bots that need a look: bounded, and only run while somebody looks. */
import { limits } from '../limits.js';
import { one, type Sql } from './sql.js';

/** Webhooks that fail now first, and of these and all others those with most failed attempts. */
export async function loadFailing(sql: Sql, limit: number): Promise<number[]> {
  const rows = await sql.query<{ readonly id: number }>(
    `select w.bot_id as id from webhooks w left join delivery_counts c on c.bot_id = w.bot_id
      where w.url_box is not null and (w.failing_since is not null or c.failed > 0)
      order by (w.failing_since is null), coalesce(c.failed, 0) desc, w.bot_id limit $1`,
    [limit],
  );
  return rows.map(({ id }) => id);
}

/** Bots with most dead letters, of limits.dead_updates_counted_max that are counted at most. */
export async function loadMostDead(sql: Sql, limit: number): Promise<number[]> {
  const rows = await sql.query<{ readonly id: number }>(
    `select bot_id as id from (
       select bot_id from dead_updates where record is not null limit $2) as letters
      group by bot_id order by count(*) desc, bot_id limit $1`,
    [limit, limits.dead_updates_counted_max],
  );
  return rows.map(({ id }) => id);
}

export interface RankedRow {
  readonly id: number;
  readonly username: string;
  readonly hooked: boolean;
  /** s */
  readonly failing_since: number | null;
  readonly delivered: number;
  readonly failed: number;
  readonly dead_letters: number;
}

/** What Postgres knows of bots, in no order. */
export function loadRanked(sql: Sql, ids: readonly number[]): Promise<RankedRow[]> {
  return sql.query<RankedRow>(
    `select b.id, b.username, w.url_box is not null as hooked,
       case when w.url_box is not null then extract(epoch from w.failing_since)::bigint end as failing_since,
       coalesce(c.delivered, 0) as delivered, coalesce(c.failed, 0) as failed,
       (select count(*) from dead_updates d where d.bot_id = b.id and d.record is not null) as dead_letters
       from bots b left join webhooks w on w.bot_id = b.id left join delivery_counts c on c.bot_id = b.id
      where b.id = any($1::bigint[])`,
    [ids],
  );
}

/** Webhooks that are set, those that fail, and dead letters, of which limits.dead_updates_counted_max are counted at most. */
export function loadTotals(
  sql: Sql,
): Promise<{ readonly webhooks: number; readonly failing: number; readonly dead_letters: number }> {
  return one(
    sql,
    `select count(*) as webhooks, count(failing_since) as failing,
       (select count(*) from (select 1 from dead_updates where record is not null limit $1) as letters) as dead_letters
       from webhooks where url_box is not null`,
    [limits.dead_updates_counted_max],
  );
}

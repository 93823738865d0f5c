/** Statements that find bots with problems for operators. They are bounded, and run only when an operator asks. */
import { limits } from '../../limits.js';
import { one, type Sql } from '../sql.js';

export interface Counted {
  readonly id: number;
  readonly count: number;
}

/** Bots whose webhook is failing now. */
export async function loadFailing(sql: Sql, limit: number): Promise<number[]> {
  const rows = await sql.query<{ readonly id: number }>(
    `select bot_id as id from webhooks where url_box is not null and failing_since is not null
      order by failing_since, bot_id limit $1`,
    [limit],
  );
  return rows.map(({ id }) => id);
}

/** The bots among these that have a webhook. */
export async function hookedAmong(sql: Sql, bots: readonly number[]): Promise<Set<number>> {
  const rows = await sql.query<{ readonly id: number }>(
    'select bot_id as id from webhooks where url_box is not null and bot_id = any($1::bigint[])',
    [bots],
  );
  return new Set(rows.map(({ id }) => id));
}

/** Bots of a shard with the most failed delivery attempts. */
export function loadMostFailed(shard: Sql, limit: number): Promise<Counted[]> {
  return shard.query<Counted>(
    'select bot_id as id, failed as count from delivery_counts where failed > 0 order by failed desc, bot_id limit $1',
    [limit],
  );
}

/** Numbers of dead letters by bot in a shard, from at most limits.dead_updates_counted_max dead letters. */
export function loadDeadCounts(shard: Sql): Promise<Counted[]> {
  return shard.query<Counted>(
    `select bot_id as id, count(*) as count from (
       select bot_id from dead_updates where record is not null limit $1) as letters
      group by bot_id`,
    [limits.dead_updates_counted_max],
  );
}

export interface DeliveredRow {
  readonly id: number;
  readonly delivered: number;
  readonly failed: number;
  readonly dead_letters: number;
}

/** Delivery counts of these bots in a shard. */
export function loadDelivered(shard: Sql, ids: readonly number[]): Promise<DeliveredRow[]> {
  return shard.query<DeliveredRow>(
    `select b.bot_id as id, coalesce(c.delivered, 0) as delivered, coalesce(c.failed, 0) as failed,
       (select count(*) from dead_updates d where d.bot_id = b.bot_id and d.record is not null) as dead_letters
       from unnest($1::bigint[]) as b (bot_id) left join delivery_counts c on c.bot_id = b.bot_id`,
    [ids],
  );
}

export interface RankedRow {
  readonly id: number;
  readonly username: string;
  readonly hooked: boolean;
  /** since when the webhook fails, Unix time in s; null if it does not */
  readonly failing_since: number | null;
}

/** Control records of these bots, in no particular order. */
export function loadRanked(sql: Sql, ids: readonly number[]): Promise<RankedRow[]> {
  return sql.query<RankedRow>(
    `select b.id, b.username, w.url_box is not null as hooked,
       case when w.url_box is not null then extract(epoch from w.failing_since)::bigint end as failing_since
       from bots b left join webhooks w on w.bot_id = b.id
      where b.id = any($1::bigint[])`,
    [ids],
  );
}

/** Numbers of webhooks that are set, and of those that are failing. */
export function loadTotals(sql: Sql): Promise<{ readonly webhooks: number; readonly failing: number }> {
  return one(
    sql,
    'select count(*) as webhooks, count(failing_since) as failing from webhooks where url_box is not null',
  );
}

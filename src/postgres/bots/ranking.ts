/** Finds bots with problems for operators. The queries run only at an operator's request, and their cost is limited. */
import { ruleLimits as limits } from '../../rules/limits.js';
import { type Sql, seconds } from '../sql.js';

export interface Counted {
  readonly id: number;
  readonly count: number;
}

/** Loads bots with a failing webhook or route. The bot that has been failing longest comes first. */
export const loadFailing = (sql: Sql, limit: number) => sql.column<number>`
  select bot_id as id from (
    select bot_id, failing_since as since from webhooks where url_box is not null and failing_since is not null
    union all select bot_id, since from failing_routes) as f
  group by bot_id order by min(since), bot_id limit ${limit}`;

export interface FailingRow {
  readonly bot: number;
  readonly username: string;
  /** The slot of the route, or 0 for the bot's webhook. */
  readonly slot: number;
  /** The Unix time in seconds at which the failures began. */
  readonly since: number;
}

/** Loads webhooks and routes that have been failing for at least `ms`, newest failure first. */
export const loadFailingFor = (sql: Sql, ms: number, limit: number) => sql.rows<FailingRow>`
  select b.id as bot, b.username, f.slot, ${seconds('f.since')} as since
   from (
    select bot_id, 0 as slot, failing_since as since from webhooks
     where url_box is not null and failing_since is not null
    union all select bot_id, slot, since from failing_routes) as f
   join bots b on b.id = f.bot_id
  where b.deleted_at is null and b.suspended_at is null
   and f.since <= now() - ${ms}::bigint * interval '1 millisecond'
  order by f.since desc, b.id, f.slot limit ${limit}`;

export interface Hooked {
  readonly bot: number;
  /**
   * The encrypted routes of a bot without a webhook. The list may be empty, because routes can be deleted. Null if the
   * bot has a webhook.
   */
  readonly routes: Buffer | null;
}

/** Returns those of the given bots that have a webhook or have ever had a route. */
export const hookedAmong = (sql: Sql, bots: readonly number[]) => sql.rows<Hooked>`
  select bot_id as bot, case when url_box is null then routes_box end as routes from webhooks
  where (url_box is not null or routes_box is not null) and bot_id = any(${bots}::bigint[])`;

export const loadMostFailed = (shard: Sql, limit: number) => shard.rows<Counted>`
  select bot_id as id, failed as count from delivery_counts where failed > 0
  order by failed desc, bot_id limit ${limit}`;

/** Counts at most limits.dead_updates_counted_max dead letters in total. */
export const loadDeadCounts = (shard: Sql) => shard.rows<Counted>`
  select bot_id as id, count(*) as count from (
    select bot_id from dead_updates where record is not null
    limit ${limits.dead_updates_counted_max}) as letters
  group by bot_id`;

export interface DeliveredRow {
  readonly id: number;
  readonly delivered: number;
  readonly failed: number;
  readonly dead_letters: number;
}

export const loadDelivered = (shard: Sql, ids: readonly number[]) => shard.rows<DeliveredRow>`
  select b.bot_id as id, coalesce(c.delivered, 0) as delivered, coalesce(c.failed, 0) as failed,
    (select count(*) from dead_updates d where d.bot_id = b.bot_id and d.record is not null) as dead_letters
  from unnest(${ids}::bigint[]) as b (bot_id) left join delivery_counts c on c.bot_id = b.bot_id`;

export interface RankedRow {
  readonly id: number;
  readonly username: string;
  readonly hooked: boolean;
  /** The Unix time in seconds at which the webhook began to fail. Null if the webhook works. */
  readonly failing_since: number | null;
}

export const loadRanked = (sql: Sql, ids: readonly number[]) => sql.rows<RankedRow>`
  select b.id, b.username, w.url_box is not null as hooked,
   case when w.url_box is not null then ${seconds('w.failing_since')} end as failing_since
   from bots b left join webhooks w on w.bot_id = b.id
  where b.id = any(${ids}::bigint[])`;

export const loadTotals = (sql: Sql) => sql.one<{ readonly webhooks: number; readonly failing: number }>`
  select count(*) as webhooks, count(failing_since) as failing from webhooks where url_box is not null`;

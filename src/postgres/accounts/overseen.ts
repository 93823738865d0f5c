/** Loads and searches bots and people for administrators. */
import { type Sql, seconds } from '../sql.js';

export interface OverseenBotRow {
  readonly id: number;
  readonly username: string;
  readonly name: string;
  /** The time at which the bot was created. All times in this row are Unix times in seconds. */
  readonly created_at: number;
  readonly suspended_at: number | null;
  /** The time at which the bot's current token was blocked because of a leak. Null if the token is not blocked. */
  readonly blocked_at: number | null;
  /** The owner. Null if the bot is the management bot. */
  readonly owner_id: number | null;
}

export const loadOverseenBot = (sql: Sql, id: number) => sql.first<OverseenBotRow>`
  select id, username, coalesce(names->>'', name) as name, ${seconds('created_at')} as created_at,
    ${seconds('suspended_at')} as suspended_at,
    case when token_hmac = blocked_hmac then ${seconds('blocked_at')} end as blocked_at, owner_id
  from bots where id = ${id} and deleted_at is null`;

export interface OverseenPersonRow {
  readonly id: number;
  readonly username: string | null;
  readonly first_name: string;
  readonly last_name: string | null;
  readonly created_at: number;
  readonly suspended_at: number | null;
  readonly bots: number;
}

export const loadOverseenPerson = (sql: Sql, id: number) => sql.first<OverseenPersonRow>`
  select id, username, first_name, last_name, ${seconds('created_at')} as created_at,
    ${seconds('suspended_at')} as suspended_at,
    (select count(*) from bots where owner_id = users.id) as bots
  from users where id = ${id} and deleted_at is null`;

/**
 * Loads the failing webhook (slot 0) and the failing routes of a bot. `since` is when the failures began, as Unix time
 * in seconds.
 */
export const loadFailingSlots = (sql: Sql, bot: number) =>
  sql.rows<{ readonly slot: number; readonly since: number }>`
    select 0 as slot, ${seconds('failing_since')} as since from webhooks
     where bot_id = ${bot} and url_box is not null and failing_since is not null
    union all select slot, ${seconds('since')} from failing_routes where bot_id = ${bot}`;

export interface AccountRow {
  readonly id: number;
  readonly is_bot: boolean;
  readonly username: string | null;
  /** The name of a bot, or the first name of a person. */
  readonly name: string;
  readonly last_name: string | null;
  readonly suspended: boolean;
}

/** Loads the accounts that have this id or this username (in lower case). */
export const loadExactAccounts = (sql: Sql, id: number, username: string) => sql.rows<AccountRow>`
  with wanted as (
    select ${id}::bigint as id union select owner from names where name = ${username} and free_at is null)
  select id, false as is_bot, username, first_name as name, last_name, suspended_at is not null as suspended
   from users where id in (select id from wanted) and deleted_at is null
  union all
  select id, true, username, coalesce(names->>'', name), null, suspended_at is not null
   from bots where id in (select id from wanted) and deleted_at is null
  order by id desc`;

export interface ScannedAccounts {
  /** The accounts that match, newest first. */
  readonly accounts: readonly AccountRow[];
  /** The lowest id that was read, whether it matched or not. Null if no account was read. */
  readonly bottom: number | null;
  /** Whether there may be older accounts. */
  readonly more: boolean;
}

/**
 * Reads the `rows` newest accounts with ids below `before`, and returns up to `limit` of them that match all patterns.
 * The patterns must come from `wordPattern`. People and bots get their ids from the same sequence.
 */
export const scanAccounts = (
  sql: Sql,
  patterns: readonly string[],
  before: number,
  rows: number,
  limit: number,
) => sql.one<ScannedAccounts>`
  with read as materialized (
    (select id, false as is_bot, username, first_name as name, last_name,
       suspended_at is not null as suspended, deleted_at is not null as deleted
     from users where id < ${before} order by id desc limit ${rows})
    union all
    (select id, true, username, coalesce(names->>'', name), null, suspended_at is not null, deleted_at is not null
     from bots where id < ${before} order by id desc limit ${rows})
    order by id desc limit ${rows}
  ), found as (
    select id, is_bot, username, name, last_name, suspended from read
    where not deleted and encode(convert_to(concat_ws(' ', '@' || username, name, last_name), 'UTF8'), 'escape')
      collate "C" ilike all (${patterns}::text[])
    order by id desc limit ${limit}
  ) select (select coalesce(json_agg(found order by id desc), '[]') from found) as accounts,
    (select min(id) from read) as bottom, (select count(*) from read) = ${rows} as more`;

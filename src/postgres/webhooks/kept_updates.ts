/** SQL statements for delivered updates that are kept for replays (decision 0081). */
import type { Sql } from '../sql.js';

export interface KeptUpdate {
  readonly bot: number;
  readonly updateId: number;
  /** The time of the delivery, as Unix time in ms. */
  readonly at: number;
  /** The person or bot that caused the update. 0 if there is none. */
  readonly user: number;
  readonly record: Buffer;
}

export const insertKept = (sql: Sql, rows: readonly KeptUpdate[]) =>
  sql.query(
    `insert into kept_updates (bot_id, update_id, at, user_id, record)
     select * from unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::bigint[], $5::bytea[])
     on conflict do nothing`,
    [
      ...[
        rows.map(({ bot }) => bot),
        rows.map(({ updateId }) => updateId),
        rows.map(({ at }) => new Date(at)),
      ],
      ...[rows.map(({ user }) => user), rows.map(({ record }) => record)],
    ],
  );

const piece = 1_000;

/** Deletes some of a bot's kept updates. Returns true if more of them may be left. */
export const deleteKeptOfBot = async (sql: Sql, bot: number): Promise<boolean> =>
  (await sql.value<number>`
    with gone as (
      delete from kept_updates where (bot_id, update_id, at) in (
        select bot_id, update_id, at from kept_updates where bot_id = ${bot} limit ${piece})
      returning 1
    ) select count(*) as count from gone`) === piece;

/** Deletes some of the updates that a person caused. Returns true if more of them may be left. */
export const deleteKeptOfUser = async (sql: Sql, user: number): Promise<boolean> =>
  (await sql.value<number>`
    with gone as (
      delete from kept_updates where (bot_id, update_id, at) in (
        select bot_id, update_id, at from kept_updates where user_id = ${user} and user_id <> 0 limit ${piece})
      returning 1
    ) select count(*) as count from gone`) === piece;

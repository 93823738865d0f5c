/** Statements that read posts and reactions which are no longer in Redis. */
import type { Sql } from '../sql.js';

export interface TallyRow {
  readonly version: number;
  readonly record: Buffer;
}

export interface PostRow {
  readonly version: number;
  readonly record: Buffer;
  readonly tallies: readonly TallyRow[];
}

/** Place of a post and the number of reactions by emoji. Null for an unknown or deleted post. */
export async function loadPost(sql: Sql, partition: number, number: number): Promise<PostRow | null> {
  const [[row], tallies] = await Promise.all([
    sql.query<{ version: number; record: Buffer | null }>(
      'select version, record from posts where partition = $1 and number = $2',
      [partition, number],
    ),
    sql.query<TallyRow>(
      'select version, record from post_tallies where partition = $1 and number = $2 and record is not null',
      [partition, number],
    ),
  ]);
  return row?.record ? { version: row.version, record: row.record, tallies } : null;
}

/** Reactions of a user on a post. */
export async function loadReactionsOf(
  sql: Sql,
  partition: number,
  number: number,
  user: number,
): Promise<Buffer[]> {
  const rows = await sql.query<{ record: Buffer }>(
    `select record from post_reactions
      where partition = $1 and number = $2 and user_id = $3 and record is not null
      order by version`,
    [partition, number, user],
  );
  return rows.map((row) => row.record);
}

export interface ReactionRow {
  readonly user_id: number;
  readonly emoji: number;
  readonly version: number;
  readonly record: Buffer;
}

/** The latest reactions of each of these emoji (columns), newest first, at most `limit` each. */
export function loadLatest(
  sql: Sql,
  partition: number,
  number: number,
  emoji: readonly number[],
  limit: number,
): Promise<ReactionRow[]> {
  return sql.query<ReactionRow>(
    `select r.user_id, r.emoji, r.version, r.record
       from unnest($3::bigint[]) as e (emoji), lateral (
         select user_id, emoji, version, record from post_reactions
          where partition = $1 and number = $2 and emoji = e.emoji and record is not null
          order by version desc limit $4) r
      order by r.emoji, r.version desc`,
    [partition, number, emoji, limit],
  );
}

/**
 * A page of all reactions: by emoji, newest first, after (`emoji`, `version`). With `only`, reactions with that emoji
 * alone.
 */
export function loadReactionPage(
  sql: Sql,
  partition: number,
  number: number,
  behind: { readonly emoji: number; readonly version: number },
  only: boolean,
  limit: number,
): Promise<ReactionRow[]> {
  return sql.query<ReactionRow>(
    `select user_id, emoji, version, record from post_reactions
      where partition = $1 and number = $2 and record is not null
        and ((emoji = $3 and version < $4) or (emoji > $3 and not $5))
      order by emoji, version desc limit $6`,
    [partition, number, behind.emoji, behind.version, only, limit],
  );
}

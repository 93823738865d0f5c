/** Loads posts and reactions that are no longer in Redis. */
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

/**
 * Returns a post's record and how many reactions it has with each emoji. The record names the post's channel and
 * message. Returns null for an unknown or deleted post.
 */
export async function loadPost(sql: Sql, partition: number, number: number): Promise<PostRow | null> {
  const [[row], tallies] = await Promise.all([
    sql.rows<{ version: number; record: Buffer | null }>`
      select version, record from posts where partition = ${partition} and number = ${number}`,
    sql.rows<TallyRow>`
      select version, record from post_tallies
      where partition = ${partition} and number = ${number} and record is not null`,
  ]);
  return row?.record ? { version: row.version, record: row.record, tallies } : null;
}

export const loadReactionsOf = (
  sql: Sql,
  partition: number,
  number: number,
  user: number,
) => sql.column<Buffer>`
  select record from post_reactions
  where partition = ${partition} and number = ${number} and user_id = ${user} and record is not null
  order by version`;

export interface ReactionRow {
  readonly user_id: number;
  readonly emoji: number;
  readonly version: number;
  readonly record: Buffer;
}

export const loadLatest = (
  sql: Sql,
  partition: number,
  number: number,
  emoji: readonly number[],
  limit: number,
) => sql.rows<ReactionRow>`
  select r.user_id, r.emoji, r.version, r.record
   from unnest(${emoji}::bigint[]) as e (emoji), lateral (
     select user_id, emoji, version, record from post_reactions
      where partition = ${partition} and number = ${number} and emoji = e.emoji and record is not null
      order by version desc limit ${limit}) r
  order by r.emoji, r.version desc`;

/**
 * Loads a page of all reactions on a post, ordered by emoji and then newest first. The page starts after the position
 * (`emoji`, `version`). With `only`, loads only the reactions with that emoji.
 */
export const loadReactionPage = (
  sql: Sql,
  partition: number,
  number: number,
  behind: { readonly emoji: number; readonly version: number },
  only: boolean,
  limit: number,
) => sql.rows<ReactionRow>`
  select user_id, emoji, version, record from post_reactions
  where partition = ${partition} and number = ${number} and record is not null
    and ((emoji = ${behind.emoji} and version < ${behind.version})
      or (emoji > ${behind.emoji} and not ${only}))
  order by emoji, version desc limit ${limit}`;

/** Statements that read a person's data for its export: page by page, ordered by key. */

import type { Notice } from '../bots/notices.js';
import type { MemberStatus } from '../chats/chats.js';
import type { Sql } from '../sql.js';

/** The last message that the person has read in a chat; undefined if no read mark is stored. */
export async function loadReadMark(sql: Sql, user: number, chat: number): Promise<number | undefined> {
  const [row] = await sql.query<{ message_id: number }>(
    'select message_id from read_marks where user_id = $1 and chat_id = $2',
    [user, chat],
  );
  return row?.message_id;
}

export interface PersonFacts {
  /** when the account was created, Unix time in seconds */
  readonly created_at: number;
  /** the person's names at identity providers */
  readonly identities: ReadonlyArray<{ readonly issuer: string; readonly subject: string }>;
}

export async function loadFacts(sql: Sql, user: number): Promise<PersonFacts> {
  const [[row], identities] = await Promise.all([
    sql.query<{ created_at: number }>(
      'select extract(epoch from created_at)::bigint as created_at from users where id = $1',
      [user],
    ),
    sql.query<{ issuer: string; subject: string }>(
      'select issuer, subject from user_identities where user_id = $1 order by id',
      [user],
    ),
  ]);
  return { created_at: row?.created_at ?? 0, identities };
}

export interface NoticeFact {
  readonly id: number;
  readonly notice: Notice;
  /** when the notice was stored, Unix time in seconds */
  readonly at: number;
}

/** Notices to a person with ids greater than `after`. */
export function loadNotices(sql: Sql, user: number, after: number, limit: number): Promise<NoticeFact[]> {
  return sql.query<NoticeFact>(
    `select id, notice, extract(epoch from created_at)::bigint as at from notices
      where user_id = $1 and id > $2 order by id limit $3`,
    [user, after, limit],
  );
}

export interface ReactionFact {
  readonly partition: number;
  readonly number: number;
  readonly emoji: number;
  readonly record: Buffer;
}

/** Reactions of a person on posts of these partitions, after the given reaction. */
export function loadReactions(
  sql: Sql,
  user: number,
  partitions: readonly number[],
  after: Pick<ReactionFact, 'partition' | 'number' | 'emoji'>,
  limit: number,
): Promise<ReactionFact[]> {
  return sql.query<ReactionFact>(
    `select partition, number, emoji, record from post_reactions
      where user_id = $1 and record is not null and (partition, number, emoji) > ($2::bigint, $3::bigint, $4::bigint)
        and partition = any($6::bigint[])
      order by partition, number, emoji limit $5`,
    [user, after.partition, after.number, after.emoji, limit, partitions],
  );
}

export interface MembershipFact {
  readonly chat_id: number;
  readonly status: MemberStatus;
  readonly rights: Readonly<Record<string, boolean>>;
}

/** Groups and channels that a person is or was in, with ids greater than `after`. */
export function loadMembershipFacts(
  sql: Sql,
  user: number,
  after: number,
  limit: number,
): Promise<MembershipFact[]> {
  return sql.query<MembershipFact>(
    `select chat_id, status, rights from chat_members where member_id = $1 and chat_id > $2
      order by chat_id limit $3`,
    [user, after, limit],
  );
}

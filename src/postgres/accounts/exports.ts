/** Loads a person's data for the export, in pages ordered by key. */

import type { Notice } from '../bots/notices.js';
import type { MemberStatus } from '../chats/chats.js';
import { type Sql, seconds } from '../sql.js';

export const loadReadMark = (sql: Sql, user: number, chat: number) => sql.firstValue<number>`
  select message_id from read_marks where user_id = ${user} and chat_id = ${chat}`;

export type PersonFacts = Awaited<ReturnType<typeof loadFacts>>;

export async function loadFacts(sql: Sql, user: number) {
  const [created_at = 0, identities] = await Promise.all([
    sql.firstValue<number>`select ${seconds('created_at')} from users where id = ${user}`,
    sql.rows<{ readonly issuer: string; readonly subject: string }>`
      select issuer, subject from user_identities where user_id = ${user} order by id`,
  ]);
  return { created_at, identities };
}

export interface NoticeFact {
  readonly id: number;
  readonly notice: Notice;
  /** The Unix time in seconds at which the notice was created. */
  readonly at: number;
}

export const loadNotices = (sql: Sql, user: number, after: number, limit: number) => sql.rows<NoticeFact>`
  select id, notice, ${seconds('created_at')} as at from notices
  where user_id = ${user} and id > ${after} order by id limit ${limit}`;

export interface ReactionFact {
  readonly partition: number;
  readonly number: number;
  readonly emoji: number;
  readonly record: Buffer;
}

export const loadReactions = (
  sql: Sql,
  user: number,
  partitions: readonly number[],
  after: Pick<ReactionFact, 'partition' | 'number' | 'emoji'>,
  limit: number,
) => sql.rows<ReactionFact>`
  select partition, number, emoji, record from post_reactions
  where user_id = ${user} and record is not null
    and (partition, number, emoji) >
      (${after.partition}::bigint, ${after.number}::bigint, ${after.emoji}::bigint)
    and partition = any(${partitions}::bigint[])
  order by partition, number, emoji limit ${limit}`;

export interface MembershipFact {
  readonly chat_id: number;
  readonly status: MemberStatus;
  readonly rights: Readonly<Record<string, boolean>>;
}

export const loadMembershipFacts = (
  sql: Sql,
  user: number,
  after: number,
  limit: number,
) => sql.rows<MembershipFact>`
  select chat_id, status, rights from chat_members where member_id = ${user} and chat_id > ${after}
  order by chat_id limit ${limit}`;

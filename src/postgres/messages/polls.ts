/** Reads polls and votes that are no longer in Redis. */
import type { Sql } from '../sql.js';

interface PollRow {
  readonly version: number;
  readonly record: Buffer;
  /** Null before the first vote. */
  readonly results: Buffer | null;
}

/** Reads a poll with its results, or null for an unknown or deleted poll. */
export const loadPoll = (sql: Sql, partition: number, number: number) => sql.first<PollRow>`
  select greatest(p.version, r.version) as version, p.record, r.record as results
  from polls p left join poll_results r using (partition, number)
  where p.partition = ${partition} and p.number = ${number} and p.record is not null`;

export const loadVote = (sql: Sql, partition: number, number: number, user: number) => sql.firstValue<Buffer>`
  select record from poll_votes
  where partition = ${partition} and number = ${number} and user_id = ${user} and record is not null`;

export interface VoteFact {
  readonly partition: number;
  readonly number: number;
  readonly record: Buffer;
}

export const loadVotes = (
  sql: Sql,
  user: number,
  partitions: readonly number[],
  after: Pick<VoteFact, 'partition' | 'number'>,
  limit: number,
) => sql.rows<VoteFact>`
  select partition, number, record from poll_votes
  where user_id = ${user} and record is not null
    and (partition, number) > (${after.partition}::bigint, ${after.number}::bigint)
    and partition = any(${partitions}::bigint[])
  order by partition, number limit ${limit}`;

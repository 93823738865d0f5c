/** Reads polls and votes that are no longer in Redis. */
import type { Sql } from '../sql.js';

export interface PollRow {
  readonly partition: number;
  readonly number: number;
  readonly version: number;
  readonly record: Buffer;
  /** The results of the poll. Null before the first vote. */
  readonly results: Buffer | null;
}

export type PollKey = Pick<PollRow, 'partition' | 'number'>;

export interface VoteKey extends PollKey {
  readonly user: number;
}

export interface VoteRow extends VoteKey {
  readonly record: Buffer;
}

/** Reads polls with their results. Leaves out unknown and deleted polls. */
export const loadPolls = (sql: Sql, polls: readonly PollKey[]) => sql.rows<PollRow>`
  select p.partition, p.number, greatest(p.version, r.version) as version, p.record, r.record as results
  from unnest(${polls.map((poll) => poll.partition)}::bigint[], ${polls.map((poll) => poll.number)}::bigint[])
    as asked (partition, number)
    join polls p using (partition, number)
    left join poll_results r using (partition, number)
  where p.record is not null`;

/** Reads the votes of these people in these polls. Leaves out votes that do not exist. */
export const loadVotesIn = (sql: Sql, votes: readonly VoteKey[]) => sql.rows<VoteRow>`
  select partition, number, user_id as "user", record
  from unnest(${votes.map((vote) => vote.partition)}::bigint[], ${votes.map((vote) => vote.number)}::bigint[],
      ${votes.map(({ user }) => user)}::bigint[]) as asked (partition, number, user_id)
    join poll_votes using (partition, number, user_id)
  where record is not null`;

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

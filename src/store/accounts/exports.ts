/**
 * Loads a person's data for the export, page by page (behaviour §14). Omits the data that the person can get with other
 * calls.
 */

import * as rows from '../../postgres/accounts/exports.js';
import { loadVotes, type VoteFact } from '../../postgres/messages/polls.js';
import { pageOfAll } from '../../postgres/shards.js';
import { ruleLimits } from '../../rules/limits.js';
import { takeCalls } from '../core/buckets.js';
import { unpack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { postId } from '../core/keys.js';
import { readOptions, type VoteRecord } from '../core/poll_record.js';
import { storeLimits as limits } from '../limits.js';
import type { ReactionRecord } from '../posts/post_cold.js';

export interface ExportedReaction {
  readonly post: number;
  readonly emoji: string;
  /** Unix time in seconds. */
  readonly date: number;
}

export interface ExportedVote {
  readonly poll: number;
  readonly options: readonly number[];
  /** Unix time in seconds. */
  readonly date: number;
}

export type Exports = ReturnType<typeof createExports>;

const page = ruleLimits.page_size_max;

async function* paged<T>(next: (after: T | undefined) => Promise<readonly T[]>): AsyncIterable<T> {
  for (let last: T | undefined; ; ) {
    const found = await next(last);
    yield* found;
    last = found.at(-1);
    if (found.length < page) return;
  }
}

export function createExports(context: StoreContext) {
  const { db, shards } = context;
  const loadReactions = (user: number, after: Pick<rows.ReactionFact, 'partition' | 'number' | 'emoji'>) =>
    pageOfAll(
      shards,
      (_, partitions) => rows.loadReactions(shards.at(...partitions), user, partitions, after, page),
      (a, b) => a.partition - b.partition || a.number - b.number || a.emoji - b.emoji,
      page,
    );
  return {
    /**
     * Starts an export. Error: `too_many_requests` if the person starts more than limits.exports_in_interval_max
     * exports in limits.export_interval_ms.
     */
    begin: (user: number) =>
      takeCalls(context, 'export', user, {
        calls: limits.exports_in_interval_max,
        intervalUs: (limits.export_interval_ms * 1_000) / limits.exports_in_interval_max,
      }),
    facts: (user: number) => rows.loadFacts(db, user),
    /** Loads how far the person has read a chat. `chat` is the id under which the person sees the chat. */
    readMark: (user: number, chat: number) => rows.loadReadMark(db, user, chat),
    notices: (user: number): AsyncIterable<rows.NoticeFact> =>
      paged((after) => rows.loadNotices(db, user, after?.id ?? 0, page)),
    /** Loads only reactions that are already in Postgres. */
    async *reactions(user: number): AsyncIterable<ExportedReaction> {
      const none = { partition: -1, number: 0, emoji: 0 };
      for await (const { partition, number, record } of paged<rows.ReactionFact>((after) =>
        loadReactions(user, after ?? none),
      )) {
        const [emoji, date] = unpack<ReactionRecord>(record);
        yield { post: postId(partition, number), emoji, date };
      }
    },
    /** Loads only votes that are already in Postgres. */
    async *votes(user: number): AsyncIterable<ExportedVote> {
      const loadPage = (after: Pick<VoteFact, 'partition' | 'number'>) =>
        pageOfAll(
          shards,
          (_, partitions) => loadVotes(shards.at(...partitions), user, partitions, after, page),
          (a, b) => a.partition - b.partition || a.number - b.number,
          page,
        );
      for await (const { partition, number, record } of paged<VoteFact>((after) =>
        loadPage(after ?? { partition: -1, number: 0 }),
      )) {
        const [options, date] = unpack<VoteRecord>(record);
        yield { poll: postId(partition, number), options: readOptions(options), date };
      }
    },
    memberships: (user: number): AsyncIterable<rows.MembershipFact> =>
      paged((after) => rows.loadMembershipFacts(db, user, after?.chat_id ?? Number.MIN_SAFE_INTEGER, page)),
  };
}

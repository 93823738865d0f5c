/** The personal data export, page by page (behaviour §14). Data available from other calls is not included. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/accounts/exports.js';
import { pageOfAll } from '../../postgres/shards.js';
import { unpack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { postId } from '../core/keys.js';
import type { ReactionRecord } from '../posts/post_cold.js';

export interface ExportedReaction {
  readonly post: number;
  readonly emoji: string;
  /** when the person reacted, Unix time in seconds */
  readonly date: number;
}

export interface Exports {
  /**
   * Counts an export of a person, over all nodes. Error: `too_many_requests` beyond limits.exports_in_interval_max in
   * limits.export_interval_ms.
   */
  begin(user: number): Promise<void>;
  facts(user: number): Promise<rows.PersonFacts>;
  /** The last message that the person has read in a chat, given by the chat id that the person sees. */
  readMark(user: number, chat: number): Promise<number | undefined>;
  notices(user: number): AsyncIterable<rows.NoticeFact>;
  /** The person's reactions that are already in Postgres. */
  reactions(user: number): AsyncIterable<ExportedReaction>;
  /** Groups and channels that the person is or was a member of. */
  memberships(user: number): AsyncIterable<rows.MembershipFact>;
}

const page = limits.page_size_max;

/** Iterates over all rows, page by page. `next` loads the page after a row. */
async function* paged<T>(next: (after: T | undefined) => Promise<readonly T[]>): AsyncIterable<T> {
  for (let last: T | undefined; ; ) {
    const found = await next(last);
    yield* found;
    last = found.at(-1);
    if (found.length < page) return;
  }
}

export function createExports({ db, shards, scripts, keys }: StoreContext): Exports {
  const loadReactions = (user: number, after: Pick<rows.ReactionFact, 'partition' | 'number' | 'emoji'>) =>
    pageOfAll(
      shards,
      (shard, partitions) => rows.loadReactions(shard.db, user, partitions, after, page),
      (a, b) => a.partition - b.partition || a.number - b.number || a.emoji - b.emoji,
      page,
    );
  return {
    async begin(user) {
      const partition = keys.partitions.of(user);
      const { wait } = await scripts.call(
        'limits/take',
        partition,
        { bucket: keys.rate(partition, `export:${user}`) },
        {
          calls: limits.exports_in_interval_max,
          interval_us: (limits.export_interval_ms * 1_000) / limits.exports_in_interval_max,
          count: 1,
        },
      );
      if (wait > 0) fail('too_many_requests', { retry_after: Math.ceil(wait / 1_000) });
    },
    facts: (user) => rows.loadFacts(db, user),
    readMark: (user, chat) => rows.loadReadMark(db, user, chat),
    notices: (user) => paged((after) => rows.loadNotices(db, user, after?.id ?? 0, page)),
    async *reactions(user) {
      const none = { partition: -1, number: 0, emoji: 0 };
      for await (const { partition, number, record } of paged<rows.ReactionFact>((after) =>
        loadReactions(user, after ?? none),
      )) {
        const [emoji, date] = unpack<ReactionRecord>(record);
        yield { post: postId(partition, number), emoji, date };
      }
    },
    memberships: (user) =>
      paged((after) => rows.loadMembershipFacts(db, user, after?.chat_id ?? Number.MIN_SAFE_INTEGER, page)),
  };
}

/** Loads data of posts from Postgres: missing records, a user's reactions, and lists of reactors that became too short. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/messages/posts.js';
import type { Chats } from '../chats/chats.js';
import { emojiColumn, unpack } from '../core/codec.js';
import { readBackTtlMs, type StoreContext, uniqueText } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { partitionOfPost, postNumber, sharedChat } from '../core/keys.js';
import type { PostReaction } from '../core/post_record.js';

export type ReactionRecord = [emoji: string, date: number, external: Buffer];
type TallyRecord = [emoji: string, count: number, first: number, users: number];

/** Maximum pages to read, because a page may contain only reactions that were removed since. */
const refillPagesMax = 5;

/** Records of a post that a script found missing. */
export interface MissingOfPost {
  readonly status: string;
  readonly ticket: string;
  /** the channel, if its record or a member is missing */
  readonly chat?: number;
}

export interface PostReadBack {
  /** Loads a record that a script found missing for a post and `who`. Error: `post_not_found`. */
  bring(post: number, who: number, missing: MissingOfPost): Promise<void>;
  /** Loads a user's reactions from Postgres, as emoji separated by spaces. */
  loadOwn(post: number, user: number): Promise<string>;
  /**
   * Extends lists of reactors that removals left shorter than the number to show. Returns false at once if none is
   * short; resolves with true once the lists are extended.
   */
  refill(post: number, reactions: readonly PostReaction[]): false | Promise<true>;
}

export function createPostReadBack(
  context: StoreContext,
  { chats, control }: { readonly chats: Chats; readonly control: ControlCopies },
): PostReadBack {
  const { shards, scripts, keys, reactorsListed } = context;
  const placeOf = (post: number) => [partitionOfPost(post), postNumber(post)] as const;

  /** Loads a post's record into Redis. */
  async function fill(post: number, ticket: string): Promise<void> {
    const [partition, number] = placeOf(post);
    const { db } = shards.of(partition);
    const row = await rows.loadPost(db, partition, number);
    if (!row) return fail('post_not_found');
    const [chat, message] = unpack<[string, number]>(row.record);
    const newest = row.tallies.reduce((a, b) => (b.version > a.version ? b : a), row.tallies[0] ?? row);
    const tallies = row.tallies.map(({ record }) => unpack<TallyRecord>(record));
    const used = tallies.filter(([, count]) => count > 0);
    const users = newest === row ? 0 : unpack<TallyRecord>(newest.record)[3];
    const columns = new Map(used.map(([emoji]) => [emojiColumn(emoji), emoji]));
    const latest = await rows.loadLatest(
      db,
      partition,
      number,
      [...columns.keys()],
      limits.reactors_kept_max,
    );
    const lists = new Map<string, Buffer[]>(used.map(([emoji]) => [emoji, []]));
    for (const { emoji, record } of latest) {
      lists.get(columns.get(emoji) as string)?.push(unpack<ReactionRecord>(record)[2]);
    }
    const version = Math.max(row.version, newest.version);
    const fields = ['c', chat, 'm', String(message), 'v', String(version), 'u', String(users)];
    await scripts.call(
      'posts/fill',
      partition,
      { meta: keys.meta(partition), post: keys.post(post), ticket: keys.ticket(keys.post(post)) },
      {
        token: ticket,
        ttl_ms: readBackTtlMs(context, partition),
        fields: [
          ...fields,
          ...used.flatMap(([emoji, count, first]) => [
            ...[`n:${emoji}`, String(count), `f:${emoji}`, String(first), `o:${emoji}`],
            Buffer.concat(lists.get(emoji) ?? []),
          ]),
        ],
      },
    );
  }

  async function loadOwn(post: number, user: number): Promise<string> {
    const records = await rows.loadReactionsOf(shards.of(partitionOfPost(post)).db, ...placeOf(post), user);
    return records.map((record) => unpack<ReactionRecord>(record)[0]).join(' ');
  }

  async function bring(post: number, who: number, missing: MissingOfPost): Promise<void> {
    if (missing.status === 'post_missing') return fill(post, missing.ticket);
    const chat = missing.chat as number;
    if (missing.status === 'member_missing') await control.fill('member', chat, who);
    else if (!(await chats.fill(sharedChat(chat), missing.ticket))) fail('post_not_found');
  }

  const isShort = ({ users, count }: PostReaction) => users.length < Math.min(count, reactorsListed);

  async function refillLists(post: number, short: readonly PostReaction[]): Promise<true> {
    const [partition, number] = placeOf(post);
    const { db } = shards.of(partition);
    const key = keys.post(post);
    const at = { post: key, ticket: keys.ticket(`${key}:refill`), acted: keys.acted(post) };
    for (const { emoji } of short) {
      const first = { token: uniqueText(), emoji, reactors: [] };
      const { ticket: token } = await scripts.call('posts/refill', partition, at, first);
      let behind = { emoji: emojiColumn(emoji), version: Number.MAX_SAFE_INTEGER };
      for (let page = 0; page < refillPagesMax; page++) {
        const found = await rows.loadReactionPage(
          db,
          partition,
          number,
          behind,
          true,
          limits.reactors_kept_max,
        );
        const last = found.at(-1);
        if (!last) break;
        const reactors = found.flatMap((row) => [String(row.user_id), unpack<ReactionRecord>(row.record)[2]]);
        const { listed } = await scripts.call('posts/refill', partition, at, { emoji, token, reactors });
        if (listed >= reactorsListed) break;
        behind = { emoji: last.emoji, version: last.version };
      }
    }
    return true;
  }

  return {
    bring,
    loadOwn,
    refill: (post, reactions) => reactions.some(isShort) && refillLists(post, reactions.filter(isShort)),
  };
}

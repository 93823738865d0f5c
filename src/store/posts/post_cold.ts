/**
 * Loads posts' data from Postgres: missing records, a user's reactions, and more people for lists of reactors that
 * became too short.
 */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/messages/posts.js';
import type { Sql } from '../../postgres/sql.js';
import type { Chats } from '../chats/chats.js';
import { emojiColumn, unpack } from '../core/codec.js';
import { readBackTtlMs, type StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { partitionOfPost, postNumber, sharedChat } from '../core/keys.js';
import type { PostReaction } from '../core/post_record.js';
import { storeLimits as limits } from '../limits.js';

export type ReactionRecord = [emoji: string, date: number, external: Buffer];
type TallyRecord = [emoji: string, count: number, first: number, users: number];

/**
 * How many pages of reactors may be loaded to extend a list. If all reactions of a page were removed after Postgres was
 * read, the next page is needed.
 */
const refillPagesMax = 5;

export interface MissingOfPost {
  readonly status: string;
  readonly ticket: string;
  /** The id of the post's channel. Set only if the record of the channel or of a member is missing. */
  readonly chat?: number;
}

const placeOf = (post: number) => [partitionOfPost(post), postNumber(post)] as const;

/** Loads the fields of a post. Error: `post_not_found`. */
async function loadFields(db: Sql, post: number): Promise<Array<string | Buffer>> {
  const row = await rows.loadPost(db, ...placeOf(post));
  if (!row) return fail('post_not_found');
  const [chat, message] = unpack<[string, number]>(row.record);
  const newest = row.tallies.reduce((a, b) => (b.version > a.version ? b : a), row.tallies[0] ?? row);
  const tallies = row.tallies.map(({ record }) => unpack<TallyRecord>(record));
  const used = tallies.filter(([, count]) => count > 0);
  const users = newest === row ? 0 : unpack<TallyRecord>(newest.record)[3];
  const columns = new Map(used.map(([emoji]) => [emojiColumn(emoji), emoji]));
  const shown = [...columns.keys()];
  const latest = await rows.loadLatest(db, ...placeOf(post), shown, limits.reactors_kept_max);
  const lists = new Map<string, Buffer[]>(used.map(([emoji]) => [emoji, []]));
  for (const { emoji, record } of latest) {
    lists.get(columns.get(emoji) as string)?.push(unpack<ReactionRecord>(record)[2]);
  }
  const version = Math.max(row.version, newest.version);
  const fields = ['c', chat, 'm', String(message), 'v', String(version), 'u', String(users)];
  const perEmoji = used.flatMap(([emoji, count, first]) => [
    ...[`n:${emoji}`, String(count), `f:${emoji}`, String(first), `o:${emoji}`],
    Buffer.concat(lists.get(emoji) ?? []),
  ]);
  return [...fields, ...perEmoji];
}

export class PostReadBack {
  readonly #context: StoreContext;
  readonly #chats: Pick<Chats, 'fill'>;
  readonly #control: ControlCopies;

  constructor(context: StoreContext, chats: Pick<Chats, 'fill'>, control: ControlCopies) {
    this.#context = context;
    this.#chats = chats;
    this.#control = control;
  }

  /** Loads the record that a script reported as missing. Error: `post_not_found`. */
  async bring(post: number, who: number, missing: MissingOfPost): Promise<void> {
    if (missing.status === 'post_missing') return this.#fill(post, missing.ticket);
    const chat = missing.chat as number;
    if (missing.status === 'member_missing') await this.#control.fill('member', chat, who);
    else if (!(await this.#chats.fill(sharedChat(chat), missing.ticket))) fail('post_not_found');
  }

  /** Loads a user's reactions, as emoji separated by spaces. */
  async loadOwn(post: number, user: number): Promise<string> {
    const db = this.#context.shards.at(partitionOfPost(post));
    const records = await rows.loadReactionsOf(db, ...placeOf(post), user);
    return records.map((record) => unpack<ReactionRecord>(record)[0]).join(' ');
  }

  /**
   * Extends the lists of reactors that are shorter than the number of reactors to show. Returns false immediately if no
   * list is too short. Otherwise resolves with true when the lists are extended.
   */
  refill(post: number, reactions: readonly PostReaction[]): false | Promise<true> {
    const { reactorsListed } = this.#context;
    const isShort = ({ users, count }: PostReaction) => users.length < Math.min(count, reactorsListed);
    return reactions.some(isShort) && this.#refillLists(post, reactions.filter(isShort));
  }

  async #refillLists(post: number, short: readonly PostReaction[]): Promise<true> {
    for (const { emoji } of short) await this.#refillList(post, emoji);
    return true;
  }

  async #refillList(post: number, emoji: string): Promise<void> {
    const { shards, scripts, keys, reactorsListed } = this.#context;
    const [partition, number] = placeOf(post);
    const db = shards.at(partition);
    const key = keys.post(post);
    const at = {
      ...{ meta: keys.meta(partition), post: key },
      ...{ ticket: keys.ticket(`${key}:refill`), acted: keys.acted(post) },
    };
    const first = { token: this.#context.uniqueText(), emoji, reactors: [] };
    const { ticket: token } = await scripts.call('posts/refill', partition, at, first);
    let behind = { emoji: emojiColumn(emoji), version: Number.MAX_SAFE_INTEGER };
    for (let page = 0; page < refillPagesMax; page++) {
      const most = limits.reactors_kept_max;
      const found = await rows.loadReactionPage(db, partition, number, behind, true, most);
      const last = found.at(-1);
      if (!last) return;
      const reactors = found.flatMap((row) => [String(row.user_id), unpack<ReactionRecord>(row.record)[2]]);
      const { listed } = await scripts.call('posts/refill', partition, at, { emoji, token, reactors });
      if (listed >= reactorsListed) return;
      behind = { emoji: last.emoji, version: last.version };
    }
  }

  async #fill(post: number, token: string): Promise<void> {
    const { shards, scripts, keys } = this.#context;
    const partition = partitionOfPost(post);
    const fields = await loadFields(shards.at(partition), post);
    const key = keys.post(post);
    const at = { meta: keys.meta(partition), post: key, ticket: keys.ticket(key) };
    const args = { token, ttl_ms: readBackTtlMs(this.#context, partition), fields };
    await scripts.call('posts/fill', partition, at, args);
  }
}

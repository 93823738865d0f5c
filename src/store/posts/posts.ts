/**
 * Manages posts and their reactions. Redis has the exact counts, the latest people for each emoji, and the reactions of
 * people who reacted recently. Everything else, for example one user's row, is read from Postgres when it is needed
 * (architecture, Journal and write-behind).
 */
import { ApiError, fail } from '../../errors.js';
import * as rows from '../../postgres/messages/posts.js';
import { emojiColumn, pack, unpack } from '../core/codec.js';
import { fillAttemptsMax, readBackTtlMs, type StoreContext } from '../core/context.js';
import type { User } from '../core/control.js';
import { type ChatRef, partitionOfPost, postNumber } from '../core/keys.js';
import { type PostReaction, readReactions, uuidText } from '../core/post_record.js';
import { postKeys } from '../core/script_keys.js';
import type { Repeats } from '../messages/repeats.js';
import type { PostReadBack, ReactionRecord } from './post_cold.js';

export interface PostState {
  readonly post: number;
  readonly chat: ChatRef;
  readonly messageId: number;
  /** Increases with every change of the reactions. */
  readonly version: number;
  /** The reactions, sorted by count and then by first use. */
  readonly reactions: readonly PostReaction[];
  readonly own: readonly string[];
}

export type ReactionChange =
  | { readonly what: 'set' | 'remove'; readonly emoji: string }
  | { readonly what: 'clear' };

/** A change of reactions. `erase` is for deleted users and skips the permission check. */
type AnyChange = ReactionChange | { readonly what: 'erase' };

export interface Reactor {
  readonly id: number;
  readonly user: string;
  readonly emoji: string;
  /** Unix time in seconds. */
  readonly date: number;
  readonly cursor: string;
}

/**
 * Stands for a reader without an account, who sees only the posts of public channels. No person has the id 0. This
 * reader has no reactions to look up.
 */
const anyone = { id: 0, isBot: true } as const;

const external = new WeakMap<object, Buffer>();

/** Returns an external id in binary form. Converts it only once per cached person. */
function externalBytes(user: Pick<User, 'externalId'>): Buffer {
  const known = external.get(user);
  if (known) return known;
  const bytes = Buffer.from(user.externalId.replaceAll('-', ''), 'hex');
  external.set(user, bytes);
  return bytes;
}

const words = (text: string) => (text === '' ? [] : text.split(' '));

/** Refuses a post whose partition does not exist. Error: `post_not_found`. */
function assertPartition({ keys }: StoreContext, post: number): void {
  if (partitionOfPost(post) >= keys.partitions.count) fail('post_not_found');
}

export class Posts {
  readonly #context: StoreContext;
  readonly #cold: PostReadBack;
  readonly #repeats: Repeats;

  constructor(context: StoreContext, cold: PostReadBack, repeats: Repeats) {
    this.#context = context;
    this.#cold = cold;
    this.#repeats = repeats;
  }

  /** Returns a post. Error: `post_not_found`, also if `who` may not see the post. */
  async find(post: number, who: { readonly id: number; readonly isBot: boolean }): Promise<PostState> {
    assertPartition(this.#context, post);
    const state = await this.#read(post, who);
    return (await this.#cold.refill(post, state.reactions)) ? this.#read(post, who) : state;
  }

  /**
   * Returns a post in a public channel, for a reader without an account. The lists of people may be shorter than those
   * from `find`, because people are not loaded from Postgres. Error: `post_not_found`, also if the channel is private.
   */
  async findPublic(post: number): Promise<PostState> {
    assertPartition(this.#context, post);
    return this.#read(post, anyone);
  }

  /**
   * Changes reactions. Setting or removing the same emoji again changes nothing. Errors: `post_not_found`,
   * `too_many_reactions`.
   */
  async react(post: number, user: Pick<User, 'id' | 'externalId'>, change: AnyChange): Promise<PostState> {
    const { scripts, keys, requestId } = this.#context;
    assertPartition(this.#context, post);
    const [partition, number] = [partitionOfPost(post), postNumber(post)];
    // Refuses new reactions while Redis is full. The script cannot refuse them, because the same script removes
    // reactions, which must also work while Redis is full.
    if (change.what === 'set' && scripts.isFull(partition)) fail('too_many_requests', { retry_after: 1 });
    const request = requestId();
    const former = this.#repeats.reacted(partition, request);
    const stood = former && (await former);
    if (stood) return this.#readAgain(post, user.id, stood);
    const emoji = 'emoji' in change ? change.emoji : '';
    const at = {
      user_ticket: keys.ticket(`${keys.acted(post)}${user.id}`),
      request: keys.request(partition, request),
      ...postKeys(keys, post),
    };
    const reaction = pack([`${post}`, `${partition}`, `${number}`, change.what, emoji, `${user.id}`]);
    const external = externalBytes(user);
    let token = this.#context.uniqueText();
    let known = '-';
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('posts/react', partition, at, { token, reaction, external, known });
      if (result.status === 'ok') return this.#shown(post, user.id, change, result);
      if (result.status === 'not_found') return fail('post_not_found');
      if (result.status === 'too_many') return fail('too_many_reactions');
      if (result.status === 'user_missing') {
        token = result.ticket;
        known = await this.#cold.loadOwn(post, user.id);
      } else {
        token = this.#context.uniqueText();
        known = '-';
        await this.#cold.bring(post, user.id, result);
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /** Removes all reactions of a deleted person, even on posts that the person could no longer see. */
  async eraseReactions(post: number, user: Pick<User, 'id' | 'externalId'>): Promise<void> {
    try {
      await this.react(post, user, { what: 'erase' });
    } catch (error) {
      // Does nothing if the post was deleted with its message.
      if (!(error instanceof ApiError && error.kind === 'post_not_found')) throw error;
    }
  }

  /**
   * Returns the users after `cursor` whose reactions are in Postgres, newest first. If `emoji` is given, returns only
   * the users who reacted with this emoji. The cursor '' starts at the first user.
   */
  async reactors(post: number, emoji: string | undefined, cursor: string, limit: number) {
    const [, given, version] = /^(\d{1,16})\.(\d{1,16})$/.exec(cursor) ?? [];
    const behind =
      given === undefined
        ? { emoji: emoji === undefined ? -1 : emojiColumn(emoji), version: Number.MAX_SAFE_INTEGER }
        : { emoji: Number(given), version: Number(version) };
    const partition = partitionOfPost(post);
    const found = await rows.loadReactionPage(
      this.#context.shards.at(partition),
      partition,
      postNumber(post),
      behind,
      emoji !== undefined,
      limit,
    );
    return found.map(({ user_id, emoji: column, version, record }) => {
      const [set, date, external] = unpack<ReactionRecord>(record);
      return { id: user_id, user: uuidText(external), emoji: set, date, cursor: `${column}.${version}` };
    });
  }

  #stateOf(post: number, raw: unknown, own: string): PostState {
    return { post, ...readReactions(raw, this.#context.reactorsListed), own: words(own) };
  }

  /**
   * Returns the post's state after a change. Extends lists of reactors that became too short. Does not do so for
   * `erase`, because the caller then ignores the state.
   */
  async #shown(
    post: number,
    id: number,
    change: AnyChange,
    { fields, own }: { readonly fields: unknown; readonly own: string },
  ): Promise<PostState> {
    const state = this.#stateOf(post, fields, own);
    const refilled = change.what !== 'erase' && this.#cold.refill(post, state.reactions);
    return refilled && (await refilled) ? this.#read(post, { id, isBot: false }) : state;
  }

  async #read(post: number, who: { readonly id: number; readonly isBot: boolean }): Promise<PostState> {
    const { scripts, keys } = this.#context;
    const partition = partitionOfPost(post);
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const ttl_ms = readBackTtlMs(this.#context, partition);
      const args = { token: this.#context.uniqueText(), who: String(who.id), ttl_ms };
      const found = await scripts.call('posts/read', partition, postKeys(keys, post), args);
      const isHidden = found.status === 'member_missing' && who.id === anyone.id;
      if (found.status === 'not_found' || isHidden) return fail('post_not_found');
      if (found.status === 'ok') {
        // Loads the reader's own reactions from Postgres if they are not in Redis. The result may lack changes made
        // during the call.
        const own = found.own ?? (who.isBot ? '' : await this.#cold.loadOwn(post, who.id));
        return this.#stateOf(post, found.fields, own);
      }
      await this.#cold.bring(post, who.id, found);
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Returns the post for a repeated call. If the post has been deleted since the first attempt, the result has no
   * reactions.
   */
  async #readAgain(
    post: number,
    id: number,
    stood: Pick<PostState, 'chat' | 'messageId'>,
  ): Promise<PostState> {
    try {
      return await this.#read(post, { id, isBot: false });
    } catch (error) {
      if (!(error instanceof ApiError && error.kind === 'post_not_found')) throw error;
      return { post, ...stood, version: 0, reactions: [], own: [] };
    }
  }
}

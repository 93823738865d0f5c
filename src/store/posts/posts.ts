/**
 * Posts and their reactions. Redis has exact counts, the latest reactors of each emoji, and the reactions of recent
 * actors. Everything else is read from Postgres, even a single user's row (architecture, Journal and write-behind).
 */
import { ApiError, fail } from '../../errors.js';
import * as rows from '../../postgres/messages/posts.js';
import type { Chats } from '../chats/chats.js';
import { emojiColumn, pack, unpack } from '../core/codec.js';
import { fillAttemptsMax, readBackTtlMs, type StoreContext, uniqueText } from '../core/context.js';
import type { ControlCopies, User } from '../core/control.js';
import { type ChatRef, partitionOfPost, postNumber } from '../core/keys.js';
import { type PostReaction, readReactions, uuidText } from '../core/post_record.js';
import { postKeys } from '../core/script_keys.js';
import type { Repeats } from '../messages/repeats.js';
import { createPostReadBack, type ReactionRecord } from './post_cold.js';
import { createPostCounts, type PostCounts } from './post_counts.js';
import type { PostIds } from './post_ids.js';
import type { PostWatches } from './post_watches.js';

export interface PostState {
  readonly post: number;
  readonly chat: ChatRef;
  readonly messageId: number;
  /** number that increases with every change of the reactions */
  readonly version: number;
  /** reactions sorted by count, then by first use */
  readonly reactions: readonly PostReaction[];
  /** the caller's own reactions */
  readonly own: readonly string[];
}

export type ReactionChange =
  | { readonly what: 'set' | 'remove'; readonly emoji: string }
  | { readonly what: 'clear' };

/** Any change of reactions. `erase` is for deleted users and skips the permission check. */
type AnyChange = ReactionChange | { readonly what: 'erase' };

export interface Reactor {
  readonly id: number;
  /** external id of the user */
  readonly user: string;
  readonly emoji: string;
  /** when the user reacted, Unix time in seconds */
  readonly date: number;
  /** cursor with which the list continues after this reactor */
  readonly cursor: string;
}

export interface Posts extends PostIds, PostCounts, PostWatches {
  /** A post as `who` sees it. Error: `post_not_found`, also if `who` may not see it. */
  find(post: number, who: { readonly id: number; readonly isBot: boolean }): Promise<PostState>;
  /**
   * Changes a person's reactions. Setting or removing an emoji twice changes nothing. Errors: `post_not_found`,
   * `too_many_reactions`.
   */
  react(post: number, user: User, change: ReactionChange): Promise<PostState>;
  /** Removes all reactions of a deleted person from a post, whether or not they could still see it. */
  eraseReactions(post: number, user: Pick<User, 'id' | 'externalId'>): Promise<void>;
  /** Lists the reactors that are in Postgres, by emoji, newest first, after `cursor`; '' starts at the first. */
  reactors(post: number, emoji: string | undefined, cursor: string, limit: number): Promise<Reactor[]>;
}

const external = new WeakMap<object, Buffer>();

/** The external id of a person in binary, converted once per cached person. */
function externalBytes(user: Pick<User, 'externalId'>): Buffer {
  const known = external.get(user);
  if (known) return known;
  const bytes = Buffer.from(user.externalId.replaceAll('-', ''), 'hex');
  external.set(user, bytes);
  return bytes;
}

const words = (text: string) => (text === '' ? [] : text.split(' '));

export function createPosts(
  context: StoreContext,
  parts: { readonly chats: Chats; readonly control: ControlCopies; readonly ids: PostIds },
  watches: PostWatches,
  repeats: Repeats,
): Posts {
  const { shards, scripts, keys, reactorsListed, requestId } = context;
  const cold = createPostReadBack(context, parts);

  function stateOf(post: number, raw: unknown, own: string): PostState {
    return { post, ...readReactions(raw, reactorsListed), own: words(own) };
  }

  async function read(
    post: number,
    who: { readonly id: number; readonly isBot: boolean },
  ): Promise<PostState> {
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const partition = partitionOfPost(post);
      const ttl_ms = readBackTtlMs(context, partition);
      const args = { token: uniqueText(), who: String(who.id), ttl_ms };
      const found = await scripts.call('posts/read', partition, postKeys(keys, post), args);
      if (found.status === 'not_found') return fail('post_not_found');
      if (found.status === 'ok') {
        // Missing reactions are in Postgres. A change made after this read is later than the call, so it need not be
        // included.
        const own = found.own ?? (who.isBot ? '' : await cold.loadOwn(post, who.id));
        return stateOf(post, found.fields, own);
      }
      await cold.bring(post, who.id, found);
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /** The post for a repeated call, without reactions if the post was deleted meanwhile. */
  async function readAgain(post: number, user: number, stood: Pick<PostState, 'chat' | 'messageId'>) {
    try {
      return await read(post, { id: user, isBot: false });
    } catch (error) {
      if (!(error instanceof ApiError && error.kind === 'post_not_found')) throw error;
      return { post, ...stood, version: 0, reactions: [], own: [] };
    }
  }

  const exists = (post: number) => {
    if (partitionOfPost(post) >= keys.partitions.count) fail('post_not_found');
  };

  async function change(
    post: number,
    user: Pick<User, 'id' | 'externalId'>,
    change: AnyChange,
  ): Promise<PostState> {
    exists(post);
    const [partition, number] = [partitionOfPost(post), postNumber(post)];
    // Removals are allowed in a full Redis, so this check is outside the script. Each process refreshes the flag once a
    // second.
    if (change.what === 'set' && scripts.isFull(partition)) fail('too_many_requests', { retry_after: 1 });
    const request = requestId();
    const former = repeats.reacted(partition, request);
    const stood = former && (await former);
    if (stood) return readAgain(post, user.id, stood);
    const emoji = 'emoji' in change ? change.emoji : '';
    const at = {
      ...postKeys(keys, post),
      user_ticket: keys.ticket(`${keys.acted(post)}${user.id}`),
      request: keys.request(partition, request),
    };
    const reaction = pack([`${post}`, `${partition}`, `${number}`, change.what, emoji, `${user.id}`]);
    const bytes = externalBytes(user);
    let known = { token: '', known: '-' };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const token = known.token === '' ? uniqueText() : known.token;
      const args = { token, reaction, external: bytes, known: known.known };
      const result = await scripts.call('posts/react', partition, at, args);
      known = { token: '', known: '-' };
      switch (result.status) {
        case 'ok': {
          const state = stateOf(post, result.fields, result.own);
          // The caller of `erase` ignores the state.
          if (change.what === 'erase') return state;
          const refilled = cold.refill(post, state.reactions);
          return refilled && (await refilled) ? read(post, { id: user.id, isBot: false }) : state;
        }
        case 'not_found':
          return fail('post_not_found');
        case 'too_many':
          return fail('too_many_reactions');
        case 'user_missing':
          known = { token: result.ticket, known: await cold.loadOwn(post, user.id) };
          break;
        default:
          await cold.bring(post, user.id, result);
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  return {
    ...parts.ids,
    ...createPostCounts(context, cold),
    async find(post, who) {
      exists(post);
      const state = await read(post, who);
      return (await cold.refill(post, state.reactions)) ? read(post, who) : state;
    },
    react: change,
    async eraseReactions(post, user) {
      try {
        await change(post, user, { what: 'erase' });
      } catch (error) {
        // The post was deleted with its message.
        if (!(error instanceof ApiError && error.kind === 'post_not_found')) throw error;
      }
    },
    async reactors(post, emoji, cursor, limit) {
      const [, given, version] = /^(\d{1,16})\.(\d{1,16})$/.exec(cursor) ?? [];
      const behind =
        given === undefined
          ? { emoji: emoji === undefined ? -1 : emojiColumn(emoji), version: Number.MAX_SAFE_INTEGER }
          : { emoji: Number(given), version: Number(version) };
      const partition = partitionOfPost(post);
      const found = await rows.loadReactionPage(
        shards.of(partition).db,
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
    },
    watch: watches.watch,
  };
}

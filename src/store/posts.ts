/**
 * Posts and the reactions on them. Redis holds exact counts, the latest reactors of each emoji and what those who acted
 * lately have; everything else is read back, a single user's row too (architecture, Journal and write-behind).
 */
import { createHash } from 'node:crypto';
import { ApiError, fail } from '../errors.js';
import { limits } from '../limits.js';
import * as rows from '../postgres/posts.js';
import type { Hints } from '../redis/hints.js';
import type { Chats } from './chats.js';
import { pack, unpack } from './codec.js';
import { fillAttemptsMax, type StoreContext, uniqueText } from './context.js';
import type { ControlCopies, User } from './control.js';
import { type ChatRef, partitionOfPost, postNumber, sharedChat } from './keys.js';
import { createPostIds, type PostIds } from './post_ids.js';
import { type PostReaction, readReactions, uuidText } from './post_record.js';
import type { Repeats } from './repeats.js';

export interface PostState {
  readonly post: number;
  readonly chat: ChatRef;
  readonly messageId: number;
  /** by count, then by first use */
  readonly reactions: readonly PostReaction[];
  /** what the one who asked put on it */
  readonly own: readonly string[];
}

export type ReactionChange =
  | { readonly what: 'set' | 'remove'; readonly emoji: string }
  | { readonly what: 'clear' };

export interface Reactor {
  /** external id */
  readonly user: string;
  readonly emoji: string;
  /** Unix time in seconds */
  readonly date: number;
}

export interface Posts extends PostIds {
  /** A post as one sees it. Error: `post_not_found`, for what one may not see as well. */
  find(post: number, who: { readonly id: number; readonly isBot: boolean }): Promise<PostState>;
  /** Changes what a person has on a post; to what it is already changes nothing. Errors: `post_not_found`,
   * `too_many_reactions`. */
  react(post: number, user: User, change: ReactionChange): Promise<PostState>;
  /** A page of all who reacted, as far as it is in Postgres: by emoji, newest first. `cursor` is '' for the first. */
  reactors(
    post: number,
    emoji: string | undefined,
    cursor: string,
    limit: number,
  ): Promise<{ readonly items: readonly Reactor[]; readonly next: string | null }>;
  /** Hears that a post's reactions changed. The returned function ends it. */
  watch(post: number, listener: () => void): Promise<() => void>;
}

/** As the script spells it: 52 bits of the digest. */
const emojiColumn = (emoji: string): number =>
  Number.parseInt(createHash('sha1').update(emoji).digest('hex').slice(0, 13), 16);

type ReactionRecord = [emoji: string, date: number, external: Buffer];
type TallyRecord = [emoji: string, count: number, first: number, users: number];

/** A page may hold those alone who took the emoji back and are not written yet. */
const refillPagesMax = 5;

const externalBytes = (id: string) => Buffer.from(id.replaceAll('-', ''), 'hex');
const words = (text: string) => (text === '' ? [] : text.split(' '));

export function createPosts(
  context: StoreContext,
  parts: { readonly chats: Chats; readonly control: ControlCopies },
  hints: Hints,
  repeats: Repeats,
): Posts {
  const { db, scripts, keys, secrets, hotTtlMs, reactorsListed, requestId } = context;
  const { chats, control } = parts;
  const ids = createPostIds(secrets);
  const placeOf = (post: number) => [partitionOfPost(post), postNumber(post)] as const;

  function keysOf(post: number) {
    const partition = partitionOfPost(post);
    const key = keys.post(post);
    return {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      post: key,
      post_ticket: keys.ticket(key),
      acted: keys.acted(post),
      chat: keys.chatRoot(partition),
      member: keys.memberRoot(partition),
      channel: keys.postChannel(post),
    };
  }

  /** Fills the record of a post that was missed. */
  async function fill(post: number, ticket: string): Promise<void> {
    const [partition, number] = placeOf(post);
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
        ttl_ms: hotTtlMs,
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

  /** What Postgres has of one user, as scripts spell it. */
  async function loadOwn(post: number, user: number): Promise<string> {
    const records = await rows.loadReactionsOf(db, ...placeOf(post), user);
    return records.map((record) => unpack<ReactionRecord>(record)[0]).join(' ');
  }

  /** Brings here what a script of a post missed. */
  async function bring(
    post: number,
    who: number,
    missing: { readonly status: string; readonly ticket: string; readonly chat?: number },
  ): Promise<void> {
    if (missing.status === 'post_missing') return fill(post, missing.ticket);
    const chat = missing.chat as number;
    if (missing.status === 'member_missing') await control.read('member', chat, who);
    else if (!(await chats.fill(sharedChat(chat), missing.ticket))) fail('post_not_found');
  }

  /** Lists that removals made shorter than what is listed get those before them again. True when one was. */
  async function refill(post: number, state: PostState): Promise<boolean> {
    const short = state.reactions.filter(
      ({ users, count }) => users.length < Math.min(count, reactorsListed),
    );
    const [partition, number] = placeOf(post);
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
    return short.length > 0;
  }

  function stateOf(post: number, raw: unknown, own: string): PostState {
    return { post, ...readReactions(raw, reactorsListed), own: words(own) };
  }

  async function read(
    post: number,
    who: { readonly id: number; readonly isBot: boolean },
  ): Promise<PostState> {
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const args = { token: uniqueText(), who: String(who.id), ttl_ms: hotTtlMs };
      const found = await scripts.call('posts/read', partitionOfPost(post), keysOf(post), args);
      if (found.status === 'not_found') return fail('post_not_found');
      if (found.status === 'ok') {
        // What is not here is in Postgres: every change that came after this look would be later than the call.
        const own = found.own ?? (who.isBot ? '' : await loadOwn(post, who.id));
        return stateOf(post, found.fields, own);
      }
      await bring(post, who.id, found);
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /** What a post shows to a user whose call came again; nothing when it is gone by now. */
  async function readAgain(post: number, user: number, stood: Pick<PostState, 'chat' | 'messageId'>) {
    try {
      return await read(post, { id: user, isBot: false });
    } catch (error) {
      if (!(error instanceof ApiError && error.kind === 'post_not_found')) throw error;
      return { post, ...stood, reactions: [], own: [] };
    }
  }

  const exists = (post: number) => {
    if (partitionOfPost(post) >= keys.partitions.count) fail('post_not_found');
  };

  return {
    ...ids,
    async find(post, who) {
      exists(post);
      const state = await read(post, who);
      return (await refill(post, state)) ? read(post, who) : state;
    },
    async react(post, user, change) {
      exists(post);
      const [partition, number] = placeOf(post);
      const request = requestId();
      const stood = await repeats.reacted(partition, request);
      if (stood) return readAgain(post, user.id, stood);
      const emoji = change.what === 'clear' ? '' : change.emoji;
      const at = {
        ...keysOf(post),
        user_ticket: keys.ticket(`${keys.acted(post)}${user.id}`),
        request: keys.request(partition, request),
      };
      const reaction = pack([`${post}`, `${partition}`, `${number}`, change.what, emoji, `${user.id}`]);
      const external = externalBytes(user.externalId);
      let known = { token: '', known: '-' };
      for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
        const args = { token: uniqueText(), reaction, external, known: '-', ...(known.token && known) };
        const result = await scripts.call('posts/react', partition, at, args);
        known = { token: '', known: '-' };
        switch (result.status) {
          case 'ok': {
            const state = stateOf(post, result.fields, result.own);
            return (await refill(post, state)) ? read(post, { id: user.id, isBot: false }) : state;
          }
          case 'not_found':
            return fail('post_not_found');
          case 'too_many':
            return fail('too_many_reactions');
          case 'user_missing':
            known = { token: result.ticket, known: await loadOwn(post, user.id) };
            break;
          default:
            await bring(post, user.id, result);
        }
      }
      return fail('unavailable', { retry_after: 1 });
    },
    async reactors(post, emoji, cursor, limit) {
      const [, column, version] = /^(\d{1,16})\.(\d{1,16})$/.exec(cursor) ?? [];
      const behind =
        column === undefined
          ? { emoji: emoji === undefined ? -1 : emojiColumn(emoji), version: Number.MAX_SAFE_INTEGER }
          : { emoji: Number(column), version: Number(version) };
      const page = await rows.loadReactionPage(db, ...placeOf(post), behind, emoji !== undefined, limit);
      const items = page.map(({ record }) => {
        const [set, date, external] = unpack<ReactionRecord>(record);
        return { user: uuidText(external), emoji: set, date };
      });
      const last = page.at(-1);
      return { items, next: last && page.length === limit ? `${last.emoji}.${last.version}` : null };
    },
    watch: (post, listener) => hints.listen(keys.postChannel(post), listener),
  };
}

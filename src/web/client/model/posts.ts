/**
 * Holds posts and their reactions. The posts page and the chats share this data, so that both show the same numbers.
 * One event stream follows the posts in view. When other posts come into view, the stream is opened again.
 */
import { call, get } from '../api.js';
import { reasonOf } from '../failures.js';
import { LiveStream } from '../live.js';
import { say } from '../notes.js';
import { me } from '../session.js';
import { Signal } from '../signal.js';
import type { Page, Post, PostReactions, PostStreamEvents } from '../types.js';

type Payload = Omit<PostReactions, 'ok'>;

/** Returns the emoji without its variation selector. */
const plain = (emoji: string) => emoji.replaceAll('\ufe0f', '');
export const heart = '❤';

/** Returns the emoji as it is drawn. Only the heart needs a variation selector. */
export const shown = (emoji: string) => (emoji === heart ? '❤️' : emoji);

/**
 * The row of quick reactions shows six emoji. If the posts have reactions with fewer emoji, these emoji fill the row.
 */
const usual = [heart, '👍', '🔥', '😂', '🎉', '😢'];
const quick_max = 6;

const asked_ms = 40;
const followed_ms = 250;
export const followed_max = 40;
const page_max = 100;

class Posts extends Signal {
  /** The posts by channel id and message id. */
  readonly #byMessage = new Map<string, Post>();
  readonly #byId = new Map<number, Post>();
  readonly #own = new Map<number, ReadonlySet<string>>();
  readonly #wanted = new Map<number, Set<number>>();
  readonly #asked = new Set<string>();
  readonly #seen = new Map<number, number>();
  #asking: ReturnType<typeof setTimeout> | undefined;
  #following: ReturnType<typeof setTimeout> | undefined;
  #stream: LiveStream<PostStreamEvents> | undefined;
  #followedNow = '';

  take(post: Post): Post {
    this.#byMessage.set(`${post.chat.id}/${post.message_id}`, post);
    this.#byId.set(post.id, post);
    const self = me.value?.external_id ?? '';
    const listed = post.reactions
      .filter(({ user_ids }) => user_ids.includes(self))
      .map(({ emoji }) => plain(emoji));
    if (!this.#own.has(post.id) || listed.length > 0) this.#own.set(post.id, new Set(listed));
    return post;
  }

  /**
   * Returns the post of the first message in `messages`. If the post is not loaded yet, starts to load it and returns
   * undefined.
   */
  find(chat: number, messages: readonly number[]): Post | undefined {
    const [id = 0] = messages;
    const known = this.#byMessage.get(`${chat}/${id}`);
    if (!known && !this.#asked.has(`${chat}/${id}`)) this.#ask(chat, id);
    return known;
  }

  byId(id: number): Post | undefined {
    return this.#byId.get(id);
  }

  isOwn(post: number, emoji: string): boolean {
    return this.#own.get(post)?.has(plain(emoji)) ?? false;
  }

  /** Returns the emoji with the most reactions on a channel's loaded posts, followed by common emoji. */
  mostUsed(chat: number): readonly string[] {
    const counts = new Map<string, number>();
    for (const post of this.#byId.values()) {
      if (post.chat.id !== chat) continue;
      for (const { emoji, count } of post.reactions) counts.set(emoji, (counts.get(emoji) ?? 0) + count);
    }
    const used = [...counts].sort(([, a], [, b]) => b - a).map(([emoji]) => emoji);
    return [...new Set([...used, ...usual])].slice(0, quick_max);
  }

  #ask(chat: number, message: number): void {
    this.#asked.add(`${chat}/${message}`);
    const wanted = this.#wanted.get(chat) ?? new Set();
    this.#wanted.set(chat, wanted.add(message));
    this.#asking ??= setTimeout(() => {
      this.#asking = undefined;
      const all = [...this.#wanted];
      this.#wanted.clear();
      for (const [id, messages] of all) void this.#read(id, messages);
    }, asked_ms);
  }

  async #read(chat: number, messages: ReadonlySet<number>): Promise<void> {
    const newest = Math.max(...messages);
    const oldest = Math.min(...messages);
    const limit = Math.min(page_max, newest - oldest + 1);
    try {
      for (let at = `before=${newest + 1}`; ; ) {
        const found = await get<Page<Post>>(`/api/chats/${chat}/posts?${at}&limit=${limit}`);
        for (const post of found.items) this.take(post);
        if (Number(found.next_cursor ?? 0) <= oldest) break;
        at = `cursor=${found.next_cursor}`;
      }
    } catch {
      for (const id of messages) this.#asked.delete(`${chat}/${id}`);
    }
    this.changed();
  }

  #put(id: number, { reactions, my_reactions }: Payload): void {
    const post = this.#byId.get(id);
    if (!post) return;
    this.#own.set(id, new Set(my_reactions.map(plain)));
    this.take({ ...post, reactions, liked_by_me: my_reactions.map(plain).includes(heart) });
    this.#own.set(id, new Set(my_reactions.map(plain)));
    this.changed();
  }

  /** Adds or removes the person's reaction. Shows the change immediately, and corrects it when the service answers. */
  async toggle(id: number, emoji: string): Promise<void> {
    const post = this.#byId.get(id);
    if (!post) return;
    const set = !this.isOwn(id, emoji);
    const before = { reactions: post.reactions, my_reactions: [...(this.#own.get(id) ?? [])] };
    this.#put(id, changed(before, emoji, set, me.value?.external_id ?? ''));
    const path = `/api/posts/${id}`;
    const isHeart = plain(emoji) === heart;
    try {
      const answer = isHeart
        ? await call<Payload>(set ? 'POST' : 'DELETE', `${path}/like`)
        : set
          ? await call<Payload>('POST', `${path}/reactions`, { emoji })
          : await call<Payload>('DELETE', `${path}/reactions?emoji=${encodeURIComponent(emoji)}`);
      this.#put(id, answer);
    } catch (error) {
      this.#put(id, before);
      say(reasonOf(error));
    }
  }

  /** Follows a post while it is in view. Returns a function that stops this. */
  follow(id: number): () => void {
    this.#seen.set(id, (this.#seen.get(id) ?? 0) + 1);
    this.#followSoon();
    return () => {
      const count = (this.#seen.get(id) ?? 1) - 1;
      if (count > 0) this.#seen.set(id, count);
      else this.#seen.delete(id);
      this.#followSoon();
    };
  }

  #followSoon(): void {
    clearTimeout(this.#following);
    this.#following = setTimeout(() => {
      const ids = [...this.#seen.keys()]
        .sort((a, b) => b - a)
        .slice(0, followed_max)
        .join(',');
      if (ids === this.#followedNow) return;
      this.#followedNow = ids;
      this.#stream?.close();
      this.#stream = undefined;
      if (ids === '') return;
      this.#stream = new LiveStream<PostStreamEvents>({
        path: `/api/stream/posts?posts=${ids}`,
        state: () => {},
        on: (event, data) => {
          if (event === 'post_reactions') this.#put(data.post_id, data);
        },
      });
    }, followed_ms);
  }
}

function changed({ reactions, my_reactions }: Payload, emoji: string, set: boolean, self: string): Payload {
  const same = (one: string) => plain(one) === plain(emoji);
  const own = set ? [...my_reactions, plain(emoji)] : my_reactions.filter((one) => !same(one));
  const found = reactions.find((one) => same(one.emoji));
  if (!found) return { reactions: [...reactions, { emoji, count: 1, user_ids: [self] }], my_reactions: own };
  const next = reactions.map((one) =>
    one === found
      ? {
          ...one,
          count: one.count + (set ? 1 : -1),
          user_ids: set ? [self, ...one.user_ids] : one.user_ids.filter((id) => id !== self),
        }
      : one,
  );
  return { reactions: next.filter(({ count }) => count > 0), my_reactions: own };
}

export const posts = new Posts();

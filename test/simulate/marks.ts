/**
 * Simulates clients that pin messages and react to posts of a channel. The pin of each chat and the reactions to each
 * post must be linearizable.
 */
import { ApiError } from '../../src/errors.js';
import { unpack } from '../../src/store/core/codec.js';
import { type ChatRef, chatText, isDirect, partitionOfPost, postNumber } from '../../src/store/core/keys.js';
import type { Sender } from '../../src/store/messages/messages.js';
import type { PostState } from '../../src/store/posts/posts.js';
import {
  type PinInput,
  type PinOutput,
  pins,
  type ReactionInput,
  type ReactionOutput,
  reactionSteps,
  reactions,
} from '../support/histories/models.js';
import { type Ask, Call, isUnknown, type OpenCalls } from './calls.js';
import type { Conditions } from './conditions.js';
import { Histories, type Sent, type Verdicts } from './oracle.js';
import { botSender, channel, newMessage, reactors, userSender, users } from './people.js';
import type { Tables } from './postgres.js';
import type { SimulatedProcess } from './process.js';
import type { Scheduler } from './scheduler.js';

type PinState = typeof pins extends { readonly start: infer S } ? S : never;
type ReactionState = typeof reactions extends { readonly start: infer S } ? S : never;

const emojis = ['👍', '🔥'] as const;

/** A person's call about a post. Its answer shows the post. */
type PostCall = (front: SimulatedProcess, again: boolean) => Promise<PostState>;

export class Marks {
  readonly #scheduler: Scheduler;
  readonly #conditions: Conditions;
  readonly #ask: Ask;
  readonly #openCalls: OpenCalls;
  readonly #onViolation: (what: string) => void;
  readonly #pins: Histories<PinInput, PinOutput, PinState>;
  readonly #reactions: Histories<ReactionInput, ReactionOutput, ReactionState>;
  /** The step at which a client learned of a post, keyed by the id of the post. Posts may disappear when Redis loses data. */
  readonly #posts = new Map<number, number>();
  /** The ids of all posts so far, including those that Redis lost. */
  readonly #created = new Set<number>();
  #lostAt = Number.NEGATIVE_INFINITY;
  /** How many calls of one person about one post are running or may still take effect. */
  readonly #running = new Map<string, number>();
  #calls = 0;

  constructor(
    scheduler: Scheduler,
    conditions: Conditions,
    ask: Ask,
    openCalls: OpenCalls,
    onViolation: (what: string) => void,
  ) {
    this.#scheduler = scheduler;
    this.#conditions = conditions;
    this.#ask = ask;
    this.#openCalls = openCalls;
    this.#onViolation = onViolation;
    this.#pins = new Histories(scheduler, (what) => onViolation(`pin of ${what}`));
    this.#reactions = new Histories(scheduler, (what) => onViolation(`reactions to ${what}`));
  }

  /** Makes one call, about a pin or about a post. */
  async call(target: Sent | undefined): Promise<void> {
    const { random } = this.#scheduler;
    if (target && random.chance(this.#conditions.pins)) return this.#pinCall(target);
    const posts = [...this.#posts.keys()];
    if (posts.length === 0 || (posts.length < this.#conditions.posts && random.chance(0.05)))
      return this.#post();
    return this.#postCall(random.pick(posts), random.pick(reactors));
  }

  /**
   * Records that a message was deleted, or may have been deleted (`output` is null). The message must no longer be
   * pinned. The caller must call the returned function when the deletion can no longer take effect.
   */
  deleted(chat: ChatRef, message: number, output: 'done' | null, from: number): () => void {
    return this.#pins.note(chatText(chat), `delete${from}`, { what: 'drop', message }, output, from);
  }

  /** Call this when Redis lost data. At step `at`, Redis lost all changes since step `since`. */
  lose(since: number, at: number): void {
    this.#lostAt = at;
    this.#pins.lose(since, at);
    this.#reactions.lose(since, at);
    for (const [post, until] of this.#posts)
      if (until >= since) {
        this.#posts.delete(post);
        this.#reactions.loose.add(String(post));
      }
  }

  // Pins.

  #drawPin(message: number): PinInput {
    const drawn = this.#scheduler.random.number();
    if (drawn < 0.35) return { what: 'pin', message };
    if (drawn < 0.5) return { what: 'unpin', message };
    if (drawn < 0.6) return { what: 'unpin' };
    return { what: drawn < 0.65 ? 'unpinAll' : 'read' };
  }

  async #pinCall({ chat, id }: Sent): Promise<void> {
    const { random } = this.#scheduler;
    const byBot = isDirect(chat) && random.chance(0.4);
    const who = byBot ? botSender(chat.id) : userSender(isDirect(chat) ? chat.user : users[0]);
    const input = this.#drawPin(id);
    const seed = `pin${++this.#calls}`;
    const from = this.#scheduler.steps;
    const call = new Call();
    const output = await this.#ask(call, (front, again) => this.#pin(front, again, seed, chat, who, input));
    if (output === 'refused' || (output === undefined && input.what === 'read')) return;
    const closed = this.#pins.note(chatText(chat), seed, input, output ?? null, from);
    if (output === undefined || output === null) this.#openCalls.add(call, closed);
  }

  /**
   * Returns null if the outcome is unknown, and `refused` if the message to pin does not exist. If an earlier attempt
   * has an unknown outcome, a refusal does not show whether that attempt took effect.
   */
  async #pin(
    front: SimulatedProcess,
    again: boolean,
    seed: string,
    chat: ChatRef,
    who: Sender,
    input: PinInput,
  ): Promise<PinOutput | 'refused' | null> {
    const store = front.store.under(seed, again);
    try {
      if (input.what === 'read') return (await store.chats.find(chat))?.pinned ?? 0;
      if (input.what === 'pin') await store.pins.pin(chat, who, input.message, true);
      else if (input.what === 'unpin') await store.pins.unpin(chat, who, input.message ?? null);
      else await store.pins.unpinAll(chat, who);
      return 'done';
    } catch (error) {
      if (!(error instanceof ApiError) || isUnknown(error)) throw error;
      if (again) return null;
      if (error.kind === 'message_to_unpin_not_found') return 'not_found';
      if (error.kind === 'message_to_pin_not_found') return 'refused';
      throw error;
    }
  }

  // Reactions.

  async #post(): Promise<void> {
    const seed = `post${++this.#calls}`;
    const from = this.#scheduler.steps;
    const sent = await this.#ask(new Call(), (front, again) =>
      front.store.under(seed, again).messages.send(channel, userSender(users[0]), newMessage(seed)),
    );
    const post = sent?.record.post;
    if (!post) return;
    if (this.#created.has(post)) this.#onViolation(`post ${post} was created twice`);
    this.#created.add(post);
    if (from > this.#lostAt) this.#posts.set(post, this.#scheduler.steps);
  }

  #drawReaction(person: string): ReactionInput {
    const { random } = this.#scheduler;
    const drawn = random.number();
    if (drawn < 0.35) return { what: 'set', person, emoji: random.pick(emojis) };
    if (drawn < 0.6) return { what: 'remove', person, emoji: random.pick(emojis) };
    return { what: drawn < 0.65 ? 'clear' : 'read', person };
  }

  /**
   * A read may load the reactions of its caller from Postgres, and they may then be newer than the counts. These
   * reactions are therefore checked only if each person makes one call about a post at a time.
   */
  async #postCall(post: number, id: number): Promise<void> {
    const name = `${id} ${post}`;
    const running = this.#running.get(name) ?? 0;
    const { callsPerPerson } = this.#conditions;
    if (running >= callsPerPerson) return;
    this.#running.set(name, running + 1);
    const ended = () => {
      this.#running.set(name, (this.#running.get(name) ?? 0) - 1);
    };
    const input = this.#drawReaction(String(id));
    const seed = `react${++this.#calls}`;
    const from = this.#scheduler.steps;
    const call = new Call();
    const shown = await this.#ask(call, (front, again) =>
      this.#shown(post, () => this.#postCallOf(post, id, input, seed)(front, again)),
    );
    if (shown === 'missing' || (shown === undefined && input.what === 'read')) return ended();
    if (shown !== undefined) {
      ended();
      const seen = outputOf(shown);
      const output = callsPerPerson > 1 ? { ...seen, own: null } : seen;
      this.#reactions.note(String(post), seed, input, output, from);
      return;
    }
    const closed = this.#reactions.note(String(post), seed, input, null, from);
    this.#openCalls.add(call, () => {
      ended();
      closed();
    });
  }

  #postCallOf(post: number, id: number, input: ReactionInput, seed: string): PostCall {
    const externalId = `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`;
    return ({ store }, again) => {
      switch (input.what) {
        case 'set':
        case 'remove':
          return store
            .under(seed, again)
            .posts.react(post, { id, externalId }, { what: input.what, emoji: input.emoji });
        case 'clear':
          return store.under(seed, again).posts.react(post, { id, externalId }, { what: 'clear' });
        default:
          return store.posts.find(post, { id, isBot: false });
      }
    };
  }

  /** A post may be missing only if Redis lost the post. */
  async #shown(post: number, call: () => Promise<PostState>): Promise<PostState | 'missing'> {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'post_not_found') throw error;
      if (this.#posts.has(post)) this.#onViolation(`post ${post} is missing`);
      return 'missing';
    }
  }

  /** Checks all histories. Also checks that their results are in Postgres. */
  verify(tables: Tables, chats: readonly ChatRef[]): Verdicts {
    const step = this.#scheduler.steps;
    for (const chat of chats) {
      const record = tables.of('chat_pins').get(`${chat.id}:${chat.user}`)?.record;
      const [pinned = 0] = record ? unpack<[number?]>(record) : [];
      this.#pins.note(chatText(chat), 'postgres', { what: 'read' }, Number(pinned), step);
    }
    for (const post of this.#posts.keys())
      for (const id of reactors) {
        const stored = storedReactions(tables, post, id);
        const input = { what: 'read', person: String(id) } as const;
        this.#reactions.note(String(post), 'postgres', input, stored, step);
      }
    const ofPins = this.#pins.verify(() => pins);
    const ofPosts = this.#reactions.verify(() => reactions, reactionSteps);
    return {
      histories: ofPins.histories + ofPosts.histories,
      calls: ofPins.calls + ofPosts.calls,
      undecided: ofPins.undecided + ofPosts.undecided,
    };
  }
}

const outputOf = ({ own, reactions: shown }: PostState): ReactionOutput => ({
  own,
  counts: Object.fromEntries(shown.map(({ emoji, count }) => [emoji, count])),
});

/**
 * Returns the reaction counts of a post, and the reactions of one person. The rows with reactions are separate from the
 * rows with counts.
 */
function storedReactions(tables: Tables, post: number, id: number): ReactionOutput {
  const isOf = ({ key }: { readonly key: readonly number[] }) =>
    key[0] === partitionOfPost(post) && key[1] === postNumber(post);
  const records = (table: string) => [...tables.of(table).values()].filter(isOf);
  return {
    own: records('post_reactions').flatMap(({ key, record }) =>
      key[2] === id && record ? [unpack<[string]>(record)[0]] : [],
    ),
    counts: Object.fromEntries(
      records('post_tallies').flatMap(({ record }) => {
        const [emoji, count] = record ? unpack<[string, number]>(record) : ['', 0];
        return count > 0 ? [[emoji, count]] : [];
      }),
    ),
  };
}

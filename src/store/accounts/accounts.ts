/**
 * Deletes accounts (behaviour §14). One transaction ends the account. After it, no token of the person is accepted, and
 * their name, bots and identities are deleted. Larger data is removed in steps, first by the call itself and then by
 * the flushers. Postgres stores how far the steps have come. If a process dies, the removal is only delayed.
 *
 * The phases, in order:
 * - `reactions`: removes the reactions and votes that are in Postgres.
 * - `leave`: leaves all groups and channels.
 * - `direct`: erases direct chats with all their messages.
 * - `shared`: erases the person's messages in groups and channels.
 * - `last`: removes the remaining reactions and votes. Waits until all changes that were made before the account was
 *   deleted are in Postgres.
 *
 * Then the person's row is cleared.
 */
import { ApiError, fail } from '../../errors.js';
import * as rows from '../../postgres/accounts/accounts.js';
import { newestMessage } from '../../postgres/chats/chats.js';
import { loadVotes } from '../../postgres/messages/polls.js';
import { holding, pageOfAll } from '../../postgres/shards.js';
import type { Database, Sql } from '../../postgres/sql.js';
import { deleteKeptOfUser } from '../../postgres/webhooks/kept_updates.js';
import { ruleLimits } from '../../rules/limits.js';
import type { Auth } from '../access/auth.js';
import type { RemovalFollowing } from '../bots/removal.js';
import type { Chats } from '../chats/chats.js';
import type { History } from '../chats/history.js';
import { forgetPersonDrafts } from '../chats/person_drafts.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { piecesOf } from '../core/groups.js';
import { type ChatRef, directChat, postId, sharedChat } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Posts } from '../posts/posts.js';
import type { Votes } from '../votes/votes.js';
import type { Erase } from './erasure.js';
import type { Identities } from './identities.js';
import type { Removed } from './retention.js';

type Phase = 'reactions' | 'leave' | 'direct' | 'shared' | 'last';

interface Place {
  readonly phase: Phase;
  /**
   * For each partition, the last version that was assigned before the account was deleted. The last phase waits until
   * these versions are in Postgres.
   */
  readonly marks: readonly number[];
  readonly at: At;
}

/**
 * The last post (its partition and number) or the last chat that a step has handled. The next step continues after it.
 */
type At = readonly [number, number];

export interface AccountParts {
  readonly control: ControlCopies;
  readonly auth: Auth;
  readonly chats: Chats;
  readonly history: History;
  readonly posts: Posts;
  readonly votes: Votes;
  readonly identities: Identities;
  readonly removal: RemovalFollowing;
  readonly erase: Erase;
}

const phases: readonly Phase[] = ['reactions', 'leave', 'direct', 'shared', 'last'];
const start = [Number.MIN_SAFE_INTEGER, 0] as const;
const side_by_side = 10;
const put_off_ms = 30_000;
const flush_wait_ms = 1_000;

async function inTurn<T>(all: readonly T[], work: (each: T) => Promise<unknown>): Promise<void> {
  for (const piece of piecesOf(all, side_by_side)) await Promise.all(piece.map(work));
}

/**
 * Runs one step of a removal. Each phase returns the position at which the next step continues, or null when the phase
 * is complete.
 */
class RemovalStep {
  readonly #context: StoreContext;
  readonly #parts: AccountParts;
  readonly #sql: Sql;
  readonly #user: number;
  readonly #until: number;
  readonly #gone: ChatRef[] = [];

  constructor(context: StoreContext, parts: AccountParts, sql: Sql, user: number) {
    this.#context = context;
    this.#until = context.time.monotonic() + limits.retention_piece_ms;
    this.#parts = parts;
    this.#sql = sql;
    this.#user = user;
  }

  async run(known: Place | null): Promise<rows.RemovalStep<Place>> {
    const marks = known?.marks ?? (await this.#journals()).map(({ version }) => version);
    let place: Place = known ?? { phase: 'reactions', marks, at: start };
    for (;;) {
      if (place.phase === 'last' && place.at[0] === start[0] && !(await this.#isFlushed(marks)))
        return { place, over: false, restMs: flush_wait_ms };
      const at = await this.#work(place.phase, place.at);
      if (at !== null) return { place: { ...place, at }, over: false, restMs: 0 };
      const next = phases[phases.indexOf(place.phase) + 1];
      if (next === undefined) break;
      place = { ...place, phase: next, at: start };
    }
    if (!(await this.#eraseKept())) return { place, over: false, restMs: 0 };
    await rows.forgetPerson(this.#sql, this.#user);
    return { place, over: true, restMs: 0 };
  }

  close(): Promise<void> {
    const { scripts, keys } = this.#context;
    return inTurn(this.#gone, (chat) => {
      const record = keys.chat(chat);
      const entries = [record, keys.ticket(record), keys.changes(chat)];
      return scripts.call('control/forget', keys.partitions.of(chat.id), { entries }, {});
    });
  }

  #isOver(): boolean {
    return this.#context.time.monotonic() > this.#until;
  }

  #work(phase: Phase, from: At): Promise<At | null> {
    switch (phase) {
      case 'reactions':
      case 'last':
        return this.#eraseReactions(from);
      case 'leave':
        return this.#leave(from);
      case 'direct':
        return this.#eraseDirect(from);
      case 'shared':
        return this.#eraseShared(from);
    }
  }

  /**
   * Returns two versions for each partition: its last assigned version, and its first version that is not yet in
   * Postgres.
   */
  #journals() {
    const { scripts, keys } = this.#context;
    return Promise.all(
      Array.from({ length: keys.partitions.count }, (_, partition) => {
        const at = { meta: keys.meta(partition), journal: keys.journal(partition) };
        return scripts.call('journal/state', partition, at, {});
      }),
    );
  }

  async #isFlushed(marks: readonly number[]): Promise<boolean> {
    const present = await this.#journals();
    return present.every(({ first }, partition) => first === null || first > (marks[partition] ?? 0));
  }

  /**
   * Deletes stored updates that the person caused. Returns false if the time ran out before all of them were deleted.
   */
  async #eraseKept(): Promise<boolean> {
    for (const { db } of holding(this.#context.shards))
      while (await deleteKeptOfUser(db, this.#user)) if (this.#isOver()) return false;
    return true;
  }

  async #eraseReactions(from: At): Promise<At | null> {
    const { shards } = this.#context;
    const id = this.#user;
    const externalId = await rows.loadExternalId(this.#sql, id);
    for (let at = from; ; ) {
      const after = { partition: at[0], number: at[1] };
      const found = await pageOfAll(
        shards,
        (_, partitions) =>
          rows.loadReactedPosts(shards.at(...partitions), id, partitions, after, side_by_side),
        (a, b) => a.partition - b.partition || a.number - b.number,
        side_by_side,
      );
      for (const { partition, number } of found) {
        await this.#parts.posts.eraseReactions(postId(partition, number), { id, externalId });
        at = [partition, number];
        if (this.#isOver()) return at;
      }
      if (found.length < side_by_side) return (await this.#eraseVotes()) ? null : at;
    }
  }

  async #eraseVotes(): Promise<boolean> {
    const { shards } = this.#context;
    const id = this.#user;
    for (let after = { partition: -1, number: 0 }; ; ) {
      const found = await pageOfAll(
        shards,
        (_, partitions) => loadVotes(shards.at(...partitions), id, partitions, after, side_by_side),
        (a, b) => a.partition - b.partition || a.number - b.number,
        side_by_side,
      );
      for (const { partition, number } of found) {
        if (this.#isOver()) return false;
        await this.#parts.votes.erase(partition, number, id);
        after = { partition, number };
      }
      if (found.length < side_by_side) return true;
    }
  }

  async #leave(from: At): Promise<At | null> {
    const { chats } = this.#parts;
    const user = this.#user;
    for (let [after] = from; ; ) {
      const found = await rows.loadChatsOfMember(this.#sql, user, after, side_by_side);
      for (const id of found) {
        await chats.passOn(sharedChat(id), user);
        await chats
          .putMember(sharedChat(id), { id: user, is_bot: false }, 'left', {}, user, true)
          .catch((error: unknown) => {
            // Ignores the error if the person has already left the chat or was removed from it.
            if (!(error instanceof ApiError && error.kind === 'not_chat_member')) throw error;
          });
        after = id;
        if (this.#isOver()) return [id, 0];
      }
      if (found.length < side_by_side) return null;
    }
  }

  async #eraseDirect(from: At): Promise<At | null> {
    for (let [, before] = from; ; before = 0) {
      const [bot] = await rows.loadDirectBots(this.#sql, this.#user);
      if (bot === undefined) return null;
      const chat = directChat(bot, this.#user);
      const left = await this.#eraseFrom(chat, before, () => true);
      if (left > 0) return [bot, left];
      await rows.removeDirectChat(this.#sql, bot, this.#user);
      this.#gone.push(chat);
      if (this.#isOver()) return start;
    }
  }

  async #eraseShared(from: At): Promise<At | null> {
    const isOwn = (sender: number) => sender === this.#user;
    let [chat, before] = from;
    if (before > 0) {
      const left = await this.#eraseFrom(sharedChat(chat), before, isOwn);
      if (left > 0) return [chat, left];
    }
    for (;;) {
      const [next] = await rows.loadChatsOfMember(this.#sql, this.#user, chat, 1);
      if (next === undefined) return null;
      before = await this.#eraseFrom(sharedChat(next), 0, isOwn);
      chat = next;
      if (before > 0 || this.#isOver()) return [chat, before];
    }
  }

  /**
   * Erases messages with ids below `before` from a chat, newest first. Erases only messages for whose sender `which`
   * returns true. Returns the value of `before` for the next step, or 0 if no messages are left.
   */
  async #eraseFrom(chat: ChatRef, before: number, which: (sender: number) => boolean): Promise<number> {
    const { history, erase } = this.#parts;
    for (let from = before; ; ) {
      const page = (await history.list(chat, from, ruleLimits.messages_batch_max)) ?? [];
      const own = page.filter(({ record }) => which(record.sender));
      if (own.length > 0) await erase(chat, own);
      // An empty page is not the end of the chat, because all messages of this page may have been deleted.
      from = page.at(-1)?.id ?? (await this.#belowEmpty(chat, from));
      if (from <= 1) return 0;
      if (this.#isOver()) return from;
    }
  }

  async #belowEmpty({ id, user }: ChatRef, before: number): Promise<number> {
    const { shards, keys } = this.#context;
    const most = before === 0 ? Number.MAX_SAFE_INTEGER : before;
    const stored = await newestMessage(shards.at(keys.partitions.of(id)), id, user, most);
    return stored + 1 < most ? stored + 1 : stored;
  }
}

export class Accounts {
  readonly #context: StoreContext;
  readonly #rawDb: Database;
  readonly #parts: AccountParts;
  readonly #onError: (error: unknown) => void;

  /**
   * Steps that must run again on a retry use `rawDb`. It bypasses the wrapper that runs each transaction only once per
   * request.
   */
  constructor(
    context: StoreContext,
    rawDb: Database,
    parts: AccountParts,
    onError: (error: unknown) => void,
  ) {
    this.#context = context;
    this.#rawDb = rawDb;
    this.#parts = parts;
    this.#onError = onError;
  }

  /**
   * Deletes an account permanently. Afterwards no node accepts the person's tokens, and the person's event streams are
   * closed. The person's bots are deleted, and nobody can write to them. Removes the remaining data within
   * limits.account_removal_ms_max. If this time is not enough, `continueRemoval` removes the rest. Error:
   * `user_not_found`.
   */
  async end(user: number): Promise<void> {
    const { control, auth, chats, identities, removal } = this.#parts;
    const ended = await rows.endAccount(this.#context.db, user, limits.deleted_username_hold_ms);
    if (ended === null) return fail('user_not_found');
    const { bots, direct, people } = ended;
    await Promise.all([this.#forget(user), control.refreshMany('bot', bots)]);
    await auth.revoke(`user:${user}`, ...bots.map((bot) => `bot:${bot}` as const));
    await forgetPersonDrafts(this.#context, user);
    await inTurn(direct, (bot) => chats.refresh(directChat(bot, user)));
    await inTurn(people, (id) => chats.refresh(sharedChat(id)));
    await inTurn(ended.identities, (id) => identities.refresh(id));
    await inTurn(bots, (bot) => removal.follow(bot, true));
    const until = this.#context.time.monotonic() + limits.account_removal_ms_max;
    try {
      for (let more = true; more && this.#context.time.monotonic() <= until; ) {
        const step = await this.#take(user);
        more = step !== null && !step.over && step.restMs === 0;
      }
    } catch (error) {
      // Only reports the error, because the account has already ended and the flushers continue the removal.
      this.#onError(error);
    }
  }

  /** Runs the steps that follow the commit. Each step can be repeated. */
  async follow(user: number): Promise<void> {
    await this.#forget(user);
    await this.#parts.auth.revoke(`user:${user}`);
    await forgetPersonDrafts(this.#context, user);
  }

  /**
   * Continues the oldest pending removal for up to limits.retention_piece_ms. Returns null if no removal is pending.
   */
  async continueRemoval(): Promise<Removed | null> {
    const step = await this.#take(null);
    return step && { removed: step.over ? 1 : 0, more: step.over || step.restMs === 0 };
  }

  #forget(user: number): Promise<unknown> {
    const { control } = this.#parts;
    return Promise.all([control.forgetMany('user', [user]), control.forgetMany('chats', [user])]);
  }

  /**
   * Runs one step of a pending removal of an account: of the person `only`, or of the oldest pending removal if `only`
   * is null. Returns null if no removal is pending.
   */
  async #take(only: number | null): Promise<rows.RemovalStep<Place> | null> {
    let taken: number | undefined;
    let step: RemovalStep | undefined;
    try {
      const done = await rows.takeRemoval<Place>(this.#rawDb, only, (sql, user, place) => {
        taken = user;
        // Creates a new step whenever this transaction runs, because Postgres may run it again after a rollback.
        step = new RemovalStep(this.#context, this.#parts, sql, user);
        return step.run(place);
      });
      await step?.close();
      return done;
    } catch (error) {
      if (taken !== undefined) await rows.putOff(this.#rawDb, taken, put_off_ms);
      throw error;
    }
  }
}

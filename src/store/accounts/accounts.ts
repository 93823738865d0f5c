/**
 * Deletes accounts (behaviour §14). One transaction ends the account: after it no token of the person is accepted, and
 * their name, bots and identities are gone. Larger data is removed in steps whose position is stored in Postgres, first
 * by the call itself and then by the flushers. A process that dies only delays the removal.
 *
 * The phases in order: `reactions` that are in Postgres; `leave` all groups and channels; `direct` chats with all their
 * messages; the person's messages in `shared` chats; and the `last` reactions, once everything journaled before the end
 * is in Postgres. Then the person's row is cleared.
 */
import { ApiError, fail } from '../../errors.js';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/accounts/accounts.js';
import { newestMessage } from '../../postgres/chats/chats.js';
import { pageOfAll } from '../../postgres/shards.js';
import type { Database, Sql } from '../../postgres/sql.js';
import type { Auth } from '../access/auth.js';
import type { RemovalFollowing } from '../bots/removal.js';
import type { Chats } from '../chats/chats.js';
import type { History } from '../chats/history.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { type ChatRef, directChat, postId, sharedChat } from '../core/keys.js';
import type { Posts } from '../posts/posts.js';
import type { Erase } from './erasure.js';
import type { Identities } from './identities.js';
import type { Removed } from './retention.js';

export interface Accounts {
  /**
   * Deletes an account for good. Once this returns, no node accepts a token of the person, their event streams are
   * closed, their bots are deleted, and nobody can write to them. The rest is removed within
   * limits.account_removal_ms_max, or later by `goOn`. Error: `user_not_found`.
   */
  end(user: number): Promise<void>;
  /** Runs the steps that follow the commit. All of them may be repeated. */
  follow(user: number): Promise<void>;
  /** Continues the removal that has waited longest, for up to limits.retention_piece_ms. Returns null if none is pending. */
  goOn(): Promise<Removed | null>;
}

type Phase = 'reactions' | 'leave' | 'direct' | 'shared' | 'last';

interface Place {
  readonly phase: Phase;
  /** The last version of each partition when the account ended. */
  readonly marks: readonly number[];
  /** Position of the last step: a post (partition and number), or a chat. The next step continues after it. */
  readonly at: readonly [number, number];
}

const phases: readonly Phase[] = ['reactions', 'leave', 'direct', 'shared', 'last'];
const start = [Number.MIN_SAFE_INTEGER, 0] as const;
const side_by_side = 10;
const put_off_ms = 30_000;
const flush_wait_ms = 1_000;

/** `rawDb` bypasses the once-per-request wrapper, for steps that must rerun on retry. */
export function createAccounts(
  { db, shards, scripts, keys }: StoreContext,
  rawDb: Database,
  parts: {
    readonly control: ControlCopies;
    readonly auth: Auth;
    readonly chats: Chats;
    readonly history: History;
    readonly posts: Posts;
    readonly identities: Identities;
    readonly removal: RemovalFollowing;
    readonly erase: Erase;
  },
  onError: (error: unknown) => void,
): Accounts {
  const { control, auth, chats, history, posts, identities, removal, erase } = parts;

  async function inTurn<T>(all: readonly T[], work: (each: T) => Promise<unknown>): Promise<void> {
    for (let i = 0; i < all.length; i += side_by_side)
      await Promise.all(all.slice(i, i + side_by_side).map(work));
  }

  /** Removes the person's copies from Redis, so that reads find no such person. */
  const forget = (user: number) =>
    Promise.all([control.forgetMany('user', [user]), control.forgetMany('chats', [user])]);

  /** Each partition's last issued version, and its first version not yet in Postgres. */
  const journals = () =>
    Promise.all(
      Array.from({ length: keys.partitions.count }, (_, partition) =>
        scripts.call(
          'journal/state',
          partition,
          { meta: keys.meta(partition), journal: keys.journal(partition) },
          {},
        ),
      ),
    );

  async function eraseReactions(
    sql: Sql,
    user: number,
    from: Place['at'],
    until: number,
  ): Promise<Place['at'] | null> {
    const externalId = await rows.loadExternalId(sql, user);
    for (let at = from; ; ) {
      const after = { partition: at[0], number: at[1] };
      const found = await pageOfAll(
        shards,
        (shard, partitions) => rows.loadReactedPosts(shard.db, user, partitions, after, side_by_side),
        (a, b) => a.partition - b.partition || a.number - b.number,
        side_by_side,
      );
      for (const { partition, number } of found) {
        await posts.eraseReactions(postId(partition, number), { id: user, externalId });
        at = [partition, number];
        if (performance.now() > until) return at;
      }
      if (found.length < side_by_side) return null;
    }
  }

  async function leave(
    sql: Sql,
    user: number,
    from: Place['at'],
    until: number,
  ): Promise<Place['at'] | null> {
    for (let at = from; ; ) {
      const found = await rows.loadChatsOfMember(sql, user, at[0], side_by_side);
      for (const id of found) {
        await chats.passOn(sharedChat(id), user);
        await chats
          .putMember(sharedChat(id), { id: user, is_bot: false }, 'left', {})
          .catch((error: unknown) => {
            // The person has already left or was removed.
            if (!(error instanceof ApiError && error.kind === 'not_chat_member')) throw error;
          });
        at = [id, 0];
        if (performance.now() > until) return at;
      }
      if (found.length < side_by_side) return null;
    }
  }

  /**
   * Erases messages of a chat whose sender matches `which`, newest first, below `before`. Returns where to continue; 0
   * when done.
   */
  async function eraseFrom(
    chat: ChatRef,
    before: number,
    until: number,
    which: (sender: number) => boolean,
  ): Promise<number> {
    for (let from = before; ; ) {
      const page = (await history.list(chat, from, limits.messages_batch_max)) ?? [];
      const own = page.filter(({ record }) => which(record.sender));
      if (own.length > 0) await erase(chat, own);
      const last = page.at(-1);
      if (last === undefined) {
        // A page may be empty because all its messages are deleted.
        const stored = await newestMessage(
          shards.of(keys.partitions.of(chat.id)).db,
          chat.id,
          chat.user,
          from === 0 ? Number.MAX_SAFE_INTEGER : from,
        );
        from = stored + 1 < from || from === 0 ? stored + 1 : stored;
      } else from = last.id;
      if (from <= 1) return 0;
      if (performance.now() > until) return from;
    }
  }

  /** Adds the removed direct chats to `gone`. Their copies are removed after the commit. */
  async function eraseDirect(
    sql: Sql,
    user: number,
    from: Place['at'],
    until: number,
    gone: ChatRef[],
  ): Promise<Place['at'] | null> {
    for (let [, before] = from; ; before = 0) {
      const [bot] = await rows.loadDirectBots(sql, user);
      if (bot === undefined) return null;
      const chat = directChat(bot, user);
      const left = await eraseFrom(chat, before, until, () => true);
      if (left > 0) return [bot, left];
      await rows.removeDirectChat(sql, bot, user);
      gone.push(chat);
      if (performance.now() > until) return start;
    }
  }

  async function close(gone: readonly ChatRef[]): Promise<void> {
    await inTurn(gone, (chat) => {
      const record = keys.chat(chat);
      const entries = [record, keys.ticket(record), keys.changes(chat)];
      return scripts.call('control/forget', keys.partitions.of(chat.id), { entries }, {});
    });
  }

  async function eraseShared(
    sql: Sql,
    user: number,
    from: Place['at'],
    until: number,
  ): Promise<Place['at'] | null> {
    let [chat, before] = from;
    if (before > 0) {
      const left = await eraseFrom(sharedChat(chat), before, until, (sender) => sender === user);
      if (left > 0) return [chat, left];
    }
    for (;;) {
      const [next] = await rows.loadChatsOfMember(sql, user, chat, 1);
      if (next === undefined) return null;
      before = await eraseFrom(sharedChat(next), 0, until, (sender) => sender === user);
      chat = next;
      if (before > 0 || performance.now() > until) return [chat, before];
    }
  }

  async function isFlushed({ marks }: Place): Promise<boolean> {
    const present = await journals();
    return present.every(({ first }, partition) => first === null || first > (marks[partition] ?? 0));
  }

  async function piece(
    sql: Sql,
    user: number,
    known: Place | null,
    gone: ChatRef[],
  ): Promise<rows.RemovalStep<Place>> {
    const until = performance.now() + limits.retention_piece_ms;
    const marks = known?.marks ?? (await journals()).map(({ version }) => version);
    let place: Place = known ?? { phase: 'reactions', marks, at: start };
    const work: Record<Phase, () => Promise<Place['at'] | null>> = {
      reactions: () => eraseReactions(sql, user, place.at, until),
      leave: () => leave(sql, user, place.at, until),
      direct: () => eraseDirect(sql, user, place.at, until, gone),
      shared: () => eraseShared(sql, user, place.at, until),
      last: () => eraseReactions(sql, user, place.at, until),
    };
    for (;;) {
      if (place.phase === 'last' && place.at[0] === start[0] && !(await isFlushed(place)))
        return { place, over: false, restMs: flush_wait_ms };
      const at = await work[place.phase]();
      if (at !== null) return { place: { ...place, at }, over: false, restMs: 0 };
      const next = phases[phases.indexOf(place.phase) + 1];
      if (next === undefined) break;
      place = { ...place, phase: next, at: start };
    }
    await rows.forgetPerson(sql, user);
    return { place, over: true, restMs: 0 };
  }

  async function take(only: number | null): Promise<rows.RemovalStep<Place> | null> {
    let taken: number | undefined;
    let gone: ChatRef[] = [];
    try {
      const step = await rows.takeRemoval<Place>(rawDb, only, (sql, user, place) => {
        taken = user;
        // Postgres may roll back and rerun the transaction.
        gone = [];
        return piece(sql, user, place, gone);
      });
      await close(gone);
      return step;
    } catch (error) {
      if (taken !== undefined) await rows.putOff(rawDb, taken, put_off_ms);
      throw error;
    }
  }

  return {
    async end(user) {
      const ended = await rows.endAccount(db, user, limits.deleted_username_hold_ms);
      if (ended === null) return fail('user_not_found');
      const { bots, direct } = ended;
      await Promise.all([forget(user), control.refreshMany('bot', bots)]);
      await auth.revoke(`user:${user}`, ...bots.map((bot) => `bot:${bot}` as const));
      await inTurn(direct, (bot) => chats.refresh(directChat(bot, user)));
      await inTurn(ended.identities, (id) => identities.refresh(id));
      await inTurn(bots, (bot) => removal.follow(bot, true));
      const until = performance.now() + limits.account_removal_ms_max;
      try {
        for (let step = await take(user); step && !step.over && step.restMs === 0; step = await take(user))
          if (performance.now() > until) break;
      } catch (error) {
        // The account has ended anyway; the flushers continue the removal.
        onError(error);
      }
    },
    async follow(user) {
      await forget(user);
      await auth.revoke(`user:${user}`);
    },
    async goOn() {
      const step = await take(null);
      return step && { removed: step.over ? 1 : 0, more: step.over || step.restMs === 0 };
    },
  };
}

/**
 * Removing messages and uploaded files past their age (behaviour §14). One process at a time walks over the chats of Postgres,
 * and erases the oldest messages of each by the script that tells Postgres of it; so what is removed has a tombstone like all
 * that is deleted, and a read-back finds nothing. A walk that dies goes on where its last piece ended.
 */
import { nowMs } from '../../clock.js';
import { ApiError } from '../../errors.js';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/messages/retention.js';
import { holding } from '../../postgres/shards.js';
import { loadStoredBefore } from '../../postgres/stored_files.js';
import { messageDate, unpackMessage } from '../core/codec.js';
import type { StoreContext, StoreShard } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Erase } from './erasure.js';

/** The files of the blob store, as far as retention needs them; `files/` implements it. */
export interface AgedFiles {
  /** Files behind a key ('' for the first), in the order of their keys; fewer than `limit` at the end. */
  list(
    after: string,
    limit: number,
  ): Promise<ReadonlyArray<{ readonly key: string /** when it was written, ms */; readonly at: number }>>;
  /** False when that failed. */
  remove(key: string): Promise<boolean>;
}

/** What a piece of a pass removed, and whether there is more to do at once. */
export interface Removed {
  readonly removed: number;
  readonly more: boolean;
}

export interface Retention {
  /** Removes messages older than `ageMs` of each shard, for up to limits.retention_piece_ms each; the pins on them and the reactions to posts go with
   * them. Null when another process has that in hand, or the last pass ended within limits.retention_interval_ms. */
  messages(ageMs: number): Promise<Removed | null>;
  /** The same of uploaded files by when they were uploaded; pictures of bots stay. */
  files(ageMs: number, files: AgedFiles): Promise<Removed | null>;
}

/** Behind `message` of the chat, where that is above 0; else behind the whole chat. */
interface Place {
  readonly chat: number;
  readonly user: number;
  readonly message: number;
}
const firstPlace: Place = { chat: Number.MIN_SAFE_INTEGER, user: 0, message: 0 };

export function createRetention({ db, shards, keys }: StoreContext, erase: Erase): Retention {
  /** Returns behind which message to go on, 0 when nothing of the chat is left that is old enough. */
  async function eraseAged(
    { db: sql }: StoreShard,
    chat: ChatRef,
    after: number,
    ageMs: number,
    walk: { removed: number; readonly until: number },
  ): Promise<number> {
    for (let from = after; ; ) {
      if (performance.now() > walk.until) return from;
      const found = await rows.loadFrom(sql, chat.id, chat.user, from, limits.messages_batch_max);
      const oldest = Math.floor((nowMs() - ageMs) / 1_000);
      // Ids of a chat follow its messages' dates.
      const young = found.findIndex(({ record }) => messageDate(record) > oldest);
      const aged = found.slice(0, young < 0 ? found.length : young);
      const last = aged.at(-1);
      if (last === undefined) return 0;
      try {
        const all = aged.map(({ message_id: id, record }) => ({ id, record: unpackMessage(record) }));
        walk.removed += await erase(chat, all, ageMs);
      } catch (error) {
        // A chat that ended with the account of its person: what was written behind after that.
        if (!(error instanceof ApiError && error.kind === 'chat_not_found')) throw error;
        await rows.deleteMessages(
          sql,
          chat.id,
          chat.user,
          aged.map(({ message_id }) => message_id),
        );
      }
      if (aged.length < limits.messages_batch_max) return 0;
      from = last.message_id;
    }
  }

  async function walkChats(
    shard: StoreShard,
    place: Place,
    ageMs: number,
  ): Promise<rows.Step<Place> & { removed: number }> {
    const walk = { removed: 0, until: performance.now() + limits.retention_piece_ms };
    if (place.message > 0) {
      const message = await eraseAged(
        shard,
        { id: place.chat, user: place.user },
        place.message,
        ageMs,
        walk,
      );
      if (message > 0) return { place: { ...place, message }, over: false, removed: walk.removed };
    }
    const chats = await rows.loadOldest(shard.db, place.chat, place.user, limits.retention_batch_max);
    let at = place;
    for (const { chat_id, user_id, head } of chats) {
      // Rows of a partition that was moved are no longer this shard's.
      const isOwn = shards.of(keys.partitions.of(chat_id)).id === shard.id;
      const old = isOwn && head !== null && messageDate(head) * 1_000 <= nowMs() - ageMs;
      const chat = { id: chat_id, user: user_id };
      // What could not be begun in time is left to the next piece.
      if (old && performance.now() > walk.until) return { place: at, over: false, removed: walk.removed };
      const message = old ? await eraseAged(shard, chat, 0, ageMs, walk) : 0;
      at = { chat: chat_id, user: user_id, message };
      if (message > 0) return { place: at, over: false, removed: walk.removed };
    }
    return {
      place: { ...at, message: 0 },
      over: chats.length < limits.retention_batch_max,
      removed: walk.removed,
    };
  }

  async function eraseOf(shard: StoreShard, ageMs: number): Promise<Removed | null> {
    let removed = 0;
    const step = await rows.takePiece(
      db,
      shard.id === 0 ? 'messages' : `messages ${shard.id}`,
      limits.retention_interval_ms,
      firstPlace,
      async (_, place) => {
        const walked = await walkChats(shard, place, ageMs);
        removed = walked.removed;
        return walked;
      },
    );
    return step && { removed, more: !step.over };
  }

  async function removeNoted(ageMs: number, remove: AgedFiles['remove'], until: number): Promise<void> {
    for (const key of await loadStoredBefore(db, ageMs, limits.retention_batch_max))
      if (performance.now() <= until) await remove(key);
  }

  return {
    async messages(ageMs) {
      const steps = await Promise.all(holding(shards).map((shard) => eraseOf(shard, ageMs)));
      const taken = steps.filter((step) => step !== null);
      if (taken.length === 0) return null;
      return {
        removed: taken.reduce((sum, { removed }) => sum + removed, 0),
        more: taken.some(({ more }) => more),
      };
    },
    async files(ageMs, { list, remove }) {
      let removed = 0;
      const step = await rows.takePiece(db, 'files', limits.retention_interval_ms, '', async (sql, after) => {
        const found = await list(after, limits.retention_batch_max);
        const aged = found.filter(({ at }) => at <= nowMs() - ageMs).map(({ key }) => key);
        // An old file never becomes a picture: those are always written anew.
        const pictures = await rows.picturesAmong(sql, aged);
        const until = performance.now() + limits.retention_piece_ms;
        for (const key of aged) {
          if (pictures.has(key)) continue;
          if (performance.now() > until)
            return { place: found[found.findIndex((f) => f.key === key) - 1]?.key ?? after, over: false };
          if (await remove(key)) removed++;
        }
        const over = found.length < limits.retention_batch_max;
        // What was counted and then never written has no place in the order of keys.
        if (over) await removeNoted(ageMs, remove, until);
        return { place: found.at(-1)?.key ?? after, over };
      });
      return step && { removed, more: !step.over };
    },
  };
}

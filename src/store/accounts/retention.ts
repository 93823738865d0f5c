/**
 * Removes messages and uploaded files beyond their retention age (behaviour §14). Messages are stored in Postgres
 * partitions by day. One process at a time drops the partitions in which all messages are too old. Before that, posts
 * and pinned messages are erased with the script that journals deletions, so that reactions and pins are removed too.
 * If a partition holds more days than it should, such as one created before messages were partitioned, the oldest
 * messages of each chat are erased with that script instead. After a crash, the walk continues at its last completed
 * step.
 */
import { nowMs } from '../../clock.js';
import { ApiError } from '../../errors.js';
import { limits } from '../../limits.js';
import {
  day_ms,
  dropSpan,
  isPast,
  messagesByDay,
  readSpans,
  type Span,
} from '../../postgres/day_partitions.js';
import * as rows from '../../postgres/messages/retention.js';
import { holding } from '../../postgres/shards.js';
import { loadStoredBefore } from '../../postgres/stored_files.js';
import { messageDate, unpack, unpackMessage } from '../core/codec.js';
import type { StoreContext, StoreShard } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Erase } from './erasure.js';

/** The part of the blob store that retention needs; implemented in `files/`. */
export interface AgedFiles {
  /** Files whose keys follow the given one ('' for the first), sorted by key; fewer than `limit` at the end. */
  list(
    after: string,
    limit: number,
  ): Promise<ReadonlyArray<{ readonly key: string /** time of the upload, ms */; readonly at: number }>>;
  /** Removes a file. Returns false if that failed. */
  remove(key: string): Promise<boolean>;
}

/** What one step of a pass removed, and whether there is more to do at once. */
export interface Removed {
  readonly removed: number;
  readonly more: boolean;
}

export interface Retention {
  /**
   * Removes messages older than `ageMs`, for up to limits.retention_piece_ms per shard, together with their pins and
   * reactions. A daily partition is dropped once all of it is too old; its messages are counted as Postgres estimates
   * them. Returns null if another process is doing it, or if the last pass ended within limits.retention_interval_ms.
   */
  messages(ageMs: number): Promise<Removed | null>;
  /** Removes uploaded files older than `ageMs` in the same way. Pictures of bots are kept. */
  files(ageMs: number, files: AgedFiles): Promise<Removed | null>;
}

/** Position in a partition of messages: after `message` of the chat if that is above 0, else after the whole chat. */
interface Place {
  readonly table: string;
  readonly chat: number;
  readonly user: number;
  readonly message: number;
  /** True once the posts of a partition to be dropped are erased; its pinned messages follow. */
  readonly pins: boolean;
}
const beginOf = (table: string): Place => ({
  ...{ table, chat: Number.MIN_SAFE_INTEGER, user: 0, message: 0 },
  pins: false,
});

/** One step of a pass. */
interface Walk {
  readonly shard: StoreShard;
  readonly ageMs: number;
  /** end of the step, by performance.now() */
  readonly until: number;
  removed: number;
}

/** A partition to clean up. `span` is set if all of it is too old, so it can be dropped. */
interface Aged {
  readonly table: string;
  readonly span?: Span;
}

export function createRetention({ db, shards, keys }: StoreContext, erase: Erase): Retention {
  const isOver = ({ until }: Walk) => performance.now() > until;
  /** Whether the chat belongs to this shard. Rows of a partition that was moved stay behind on the old shard. */
  const isOwn = ({ shard }: Walk, chat: number) => shards.of(keys.partitions.of(chat)).id === shard.id;

  /** Erases messages of a chat. Returns false if the chat was deleted with its person's account. */
  async function eraseSome(walk: Walk, chat: ChatRef, found: readonly rows.RecordRow[]): Promise<boolean> {
    try {
      const all = found.map(({ message_id: id, record }) => ({ id, record: unpackMessage(record) }));
      walk.removed += await erase(chat, all, walk.ageMs);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError && error.kind === 'chat_not_found')) throw error;
      return false;
    }
  }

  /** Erases old messages of a chat. Returns the message to continue after; 0 when no old ones are left. */
  async function eraseAged(walk: Walk, table: string, chat: ChatRef, after: number): Promise<number> {
    const { db: sql } = walk.shard;
    for (let from = after; ; ) {
      if (isOver(walk)) return from;
      const found = await rows.loadFrom(sql, table, chat.id, chat.user, from, limits.messages_batch_max);
      const oldest = Math.floor((nowMs() - walk.ageMs) / 1_000);
      // Within a chat, ids are in order of date.
      const young = found.findIndex(({ record }) => messageDate(record) > oldest);
      const aged = found.slice(0, young < 0 ? found.length : young);
      const last = aged.at(-1);
      if (last === undefined) return 0;
      if (!(await eraseSome(walk, chat, aged))) {
        const ids = aged.map(({ message_id }) => message_id);
        await rows.deleteMessages(sql, table, chat.id, chat.user, ids);
      }
      if (aged.length < limits.messages_batch_max) return 0;
      from = last.message_id;
    }
  }

  /** Erases old messages in a partition that also has younger ones. Returns where to continue; null at the end. */
  async function eraseIn(walk: Walk, place: Place): Promise<Place | null> {
    const { table } = place;
    let at = place;
    if (at.message > 0) {
      const message = await eraseAged(walk, table, { id: at.chat, user: at.user }, at.message);
      at = { ...at, message };
      if (message > 0) return at;
    }
    for (;;) {
      const chats = await rows.loadOldest(walk.shard.db, table, at.chat, at.user, limits.retention_batch_max);
      for (const { chat_id, user_id, head } of chats) {
        const old = head !== null && messageDate(head) * 1_000 <= nowMs() - walk.ageMs;
        const due = old && isOwn(walk, chat_id);
        // Out of time: the next step starts with this chat.
        if (due && isOver(walk)) return at;
        const message = due ? await eraseAged(walk, table, { id: chat_id, user: user_id }, 0) : 0;
        at = { ...at, chat: chat_id, user: user_id, message };
        if (message > 0) return at;
      }
      if (chats.length < limits.retention_batch_max) return null;
      if (isOver(walk)) return at;
    }
  }

  /** Erases messages of several chats, those of one chat together in one step. */
  async function eraseEach(walk: Walk, found: ReadonlyArray<rows.ChatRow & rows.RecordRow>): Promise<void> {
    for (let from = 0; from < found.length; ) {
      const { chat_id: id, user_id: user } = found[from] as rows.ChatRow;
      const rest = found.slice(from, from + limits.messages_batch_max);
      const other = rest.findIndex((row) => row.chat_id !== id || row.user_id !== user);
      const own = other < 0 ? rest : rest.slice(0, other);
      if (isOwn(walk, id)) await eraseSome(walk, { id, user }, own);
      from += own.length;
    }
  }

  /**
   * Erases the messages of a partition to be dropped that have related data: posts with their reactions, and pinned
   * messages. Returns where to continue; null at the end.
   */
  async function eraseHung(walk: Walk, place: Place): Promise<Place | null> {
    const { db: sql } = walk.shard;
    const { table } = place;
    let at = place;
    while (!at.pins) {
      if (isOver(walk)) return at;
      const found = await rows.loadShared(sql, table, at, limits.retention_batch_max);
      await eraseEach(
        walk,
        found.filter(({ record }) => unpackMessage(record).post !== 0),
      );
      const last = found.at(-1);
      if (found.length < limits.retention_batch_max || last === undefined)
        at = { ...beginOf(table), pins: true };
      else at = { ...at, chat: last.chat_id, message: last.message_id };
    }
    for (;;) {
      if (isOver(walk)) return at;
      const pins = await rows.loadPins(sql, at, limits.retention_batch_max);
      const pinned = pins.map(
        ({ chat_id, user_id, record }) => [chat_id, user_id, unpack<[number]>(record)[0]] as const,
      );
      await eraseEach(walk, await rows.loadThese(sql, table, pinned));
      const last = pins.at(-1);
      if (pins.length < limits.retention_batch_max || last === undefined) return null;
      at = { ...at, chat: last.chat_id, user: last.user_id };
    }
  }

  async function endSpan(walk: Walk, place: Place, span: Span): Promise<Place | null> {
    const left = await eraseHung(walk, place);
    if (left !== null) return left;
    const count = await rows.estimateRows(walk.shard.db, span.name);
    // A locked partition is left to the next pass, because waiting for the lock would block all other queries on the
    // table.
    if (await dropSpan(walk.shard.pool, 'messages', span)) walk.removed += count;
    return null;
  }

  /**
   * The partitions to clean up, sorted by name: those that are too old as a whole, and those that hold more days than
   * they should.
   */
  async function agedIn({ shard, ageMs }: Walk): Promise<Aged[]> {
    const { spans } = await readSpans(shard.pool, { table: 'messages' });
    const { days } = messagesByDay(Math.max(1, ageMs / day_ms));
    const found = spans.flatMap((span): Aged[] => {
      if (isPast(span, nowMs(), ageMs)) return [{ table: span.name, span }];
      return span.to - span.from > days && span.from * day_ms <= nowMs() - ageMs
        ? [{ table: span.name }]
        : [];
    });
    if (await rows.hasStrays(shard.db)) found.push({ table: rows.strayMessages });
    return found.sort((a, b) => (a.table < b.table ? -1 : 1));
  }

  async function walkOn(walk: Walk, place: Place): Promise<rows.Step<Place>> {
    const aged = await agedIn(walk);
    for (const { table, span } of aged) {
      if (table < place.table) continue;
      const at = table === place.table ? place : beginOf(table);
      const left = span ? await endSpan(walk, at, span) : await eraseIn(walk, at);
      if (left !== null) return { place: left, over: false };
    }
    return { place: beginOf(''), over: true };
  }

  async function eraseOf(shard: StoreShard, ageMs: number): Promise<Removed | null> {
    const walk: Walk = { shard, ageMs, until: performance.now() + limits.retention_piece_ms, removed: 0 };
    const step = await rows.takePiece(
      db,
      shard.id === 0 ? 'messages' : `messages ${shard.id}`,
      limits.retention_interval_ms,
      beginOf(''),
      // A position stored by an earlier release names no table.
      (_, place) => walkOn(walk, { ...beginOf(''), ...place }),
    );
    return step && { removed: walk.removed, more: !step.over };
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
        // An old file cannot become a picture later, because pictures are always uploaded separately.
        const pictures = await rows.picturesAmong(sql, aged);
        const until = performance.now() + limits.retention_piece_ms;
        for (const key of aged) {
          if (pictures.has(key)) continue;
          if (performance.now() > until)
            return { place: found[found.findIndex((f) => f.key === key) - 1]?.key ?? after, over: false };
          if (await remove(key)) removed++;
        }
        const over = found.length < limits.retention_batch_max;
        // Files that were counted but never written are not in the list of stored keys.
        if (over) await removeNoted(ageMs, remove, until);
        return { place: found.at(-1)?.key ?? after, over };
      });
      return step && { removed, more: !step.over };
    },
  };
}

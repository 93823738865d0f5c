/**
 * Removes messages and uploaded files beyond their retention age (behaviour §14). Messages are stored in Postgres
 * partitions by day. One process at a time drops the partitions in which all messages are too old. Before the drop, the
 * script that journals deletions erases posts and pinned messages, so that their reactions and pins are removed too. A
 * partition may span too many days, for example if it was created before messages were partitioned. In this case, the
 * process does not drop the partition, and the script erases the oldest messages in each chat. After a crash, the pass
 * continues at its last completed step.
 */
import { ApiError } from '../../errors.js';
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
import { loadUnwritten } from '../../postgres/stored_files.js';
import { ruleLimits } from '../../rules/limits.js';
import type { Time } from '../../time.js';
import { messageDate, unpack, unpackMessage } from '../core/codec.js';
import type { StoreContext, StoreShard } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Erase } from './erasure.js';

export interface AgedFiles {
  /**
   * Lists files whose keys come after the given key ('' for the start), sorted by key. Returns fewer than `limit` files
   * only at the end of the list.
   */
  list(
    after: string,
    limit: number,
  ): Promise<ReadonlyArray<{ readonly key: string /* in ms */; readonly at: number }>>;
  remove(key: string): Promise<boolean>;
}

export interface Removed {
  readonly removed: number;
  readonly more: boolean;
}

/**
 * Where the cleanup of a table continues: after the message `message` of the chat, or after the whole chat if `message`
 * is 0.
 */
interface Place {
  readonly table: string;
  readonly chat: number;
  readonly user: number;
  readonly message: number;
  readonly pins: boolean;
}
const beginOf = (table: string, pins = false): Place => ({
  table,
  chat: Number.MIN_SAFE_INTEGER,
  user: 0,
  message: 0,
  pins,
});

/**
 * A Postgres partition of the table. `span` is set if all messages in the partition are too old, so that the partition
 * can be dropped.
 */
interface Aged {
  readonly table: string;
  readonly span?: Span;
}

/**
 * Runs one step of the removal of old messages. The step has a time limit. After this time, it stops before the
 * next message.
 */
class MessageStep {
  readonly #shard: StoreShard;
  readonly #ageMs: number;
  readonly #erase: Erase;
  /**
   * Returns whether a chat belongs to this shard. The shard may still have the chat's rows although the chat has moved
   * to another shard.
   */
  readonly #isOwn: (chat: number) => boolean;
  readonly #time: Time;
  readonly #until: number;
  removed = 0;

  constructor(time: Time, shard: StoreShard, ageMs: number, erase: Erase, isOwn: (chat: number) => boolean) {
    this.#time = time;
    this.#until = time.monotonic() + limits.retention_piece_ms;
    this.#shard = shard;
    this.#ageMs = ageMs;
    this.#erase = erase;
    this.#isOwn = isOwn;
  }

  async run(place: Place): Promise<rows.Step<Place>> {
    for (const { table, span } of await this.#agedPartitions()) {
      if (table < place.table) continue;
      const at = table === place.table ? place : beginOf(table);
      const left = span ? await this.#endSpan(at, span) : await this.#eraseIn(at);
      if (left !== null) return { place: left, over: false };
    }
    return { place: beginOf(''), over: true };
  }

  #isOver(): boolean {
    return this.#time.monotonic() > this.#until;
  }

  /**
   * Returns the tables to clean up, sorted by name. These are Postgres partitions with only old messages, Postgres
   * partitions that cover more days than the current retention time allows, and the table of stray messages.
   */
  async #agedPartitions(): Promise<Aged[]> {
    const ageMs = this.#ageMs;
    const { spans, now } = await readSpans(this.#shard.pool, { table: 'messages' });
    const { days } = messagesByDay(Math.max(1, ageMs / day_ms));
    const found = spans.flatMap((span): Aged[] => {
      // Drops a Postgres partition only if the clocks of Petrel and Postgres both show that it is too old. A drop
      // cannot be undone, and one clock may be wrong.
      if (isPast(span, Math.min(now, this.#time.now()), ageMs)) return [{ table: span.name, span }];
      return span.to - span.from > days && span.from * day_ms <= this.#time.now() - ageMs
        ? [{ table: span.name }]
        : [];
    });
    if (await rows.hasStrays(this.#shard.db)) found.push({ table: rows.strayMessages });
    return found.sort((a, b) => (a.table < b.table ? -1 : 1));
  }

  async #endSpan(place: Place, span: Span): Promise<Place | null> {
    const at = place.pins ? place : await this.#erasePosts(place);
    const left = at.pins ? await this.#erasePins(at) : at;
    if (left !== null) return left;
    const count = await rows.estimateRows(this.#shard.db, span.name);
    // Skips a locked Postgres partition until the next pass, because waiting for the lock would block all other queries
    // on the table.
    if (await dropSpan(this.#shard.pool, 'messages', span)) this.removed += count;
    return null;
  }

  async #erasePosts(place: Place): Promise<Place> {
    const { table } = place;
    for (let at = place; ; ) {
      if (this.#isOver()) return at;
      const found = await rows.loadShared(this.#shard.db, table, at, limits.retention_batch_max);
      await this.#eraseEach(found.filter(({ record }) => unpackMessage(record).post !== 0));
      const last = found.at(-1);
      if (found.length < limits.retention_batch_max || last === undefined) return beginOf(table, true);
      at = { ...at, chat: last.chat_id, message: last.message_id };
    }
  }

  async #erasePins(place: Place): Promise<Place | null> {
    const { db } = this.#shard;
    for (let at = place; ; ) {
      if (this.#isOver()) return at;
      const pins = await rows.loadPins(db, at, limits.retention_batch_max);
      const pinned = pins.map(
        ({ chat_id, user_id, record }) => [chat_id, user_id, unpack<[number]>(record)[0]] as const,
      );
      await this.#eraseEach(await rows.loadThese(db, place.table, pinned));
      const last = pins.at(-1);
      if (pins.length < limits.retention_batch_max || last === undefined) return null;
      at = { ...at, chat: last.chat_id, user: last.user_id };
    }
  }

  /**
   * Erases the old messages in a Postgres partition that also has younger messages. Returns the position at which to
   * continue, or null at the end.
   */
  async #eraseIn(place: Place): Promise<Place | null> {
    let at = place.message > 0 ? await this.#eraseChat(place) : place;
    while (at.message === 0) {
      const { table, chat, user } = at;
      const chats = await rows.loadOldest(this.#shard.db, table, chat, user, limits.retention_batch_max);
      for (const row of chats) {
        const isDue = this.#isDue(row);
        // If the step has reached its time limit, it ends before this chat. The next step starts with this chat.
        if (isDue && this.#isOver()) return at;
        at = { ...at, chat: row.chat_id, user: row.user_id };
        if (isDue) at = await this.#eraseChat(at);
        if (at.message > 0) return at;
      }
      if (chats.length < limits.retention_batch_max) return null;
      if (this.#isOver()) return at;
    }
    return at;
  }

  /** Returns whether the oldest message in a chat is too old. Returns false for a chat of another shard. */
  #isDue({ chat_id, head }: rows.OldestRow): boolean {
    const isOld = head !== null && messageDate(head) * 1_000 <= this.#time.now() - this.#ageMs;
    return isOld && this.#isOwn(chat_id);
  }

  async #eraseChat(place: Place): Promise<Place> {
    const chat = { id: place.chat, user: place.user };
    return { ...place, message: await this.#eraseAged(place.table, chat, place.message) };
  }

  async #eraseAged(table: string, chat: ChatRef, after: number): Promise<number> {
    const { db } = this.#shard;
    for (let from = after; ; ) {
      if (this.#isOver()) return from;
      const found = await rows.loadFrom(db, table, chat.id, chat.user, from, ruleLimits.messages_batch_max);
      const oldest = Math.floor((this.#time.now() - this.#ageMs) / 1_000);
      // Stops at the first message that is not too old, because the following messages of the chat are newer.
      const young = found.findIndex(({ record }) => messageDate(record) > oldest);
      const aged = found.slice(0, young < 0 ? found.length : young);
      const last = aged.at(-1);
      if (last === undefined) return 0;
      if (!(await this.#eraseSome(chat, aged))) {
        const ids = aged.map(({ message_id }) => message_id);
        await rows.deleteMessages(db, table, chat.id, chat.user, ids);
      }
      if (aged.length < ruleLimits.messages_batch_max) return 0;
      from = last.message_id;
    }
  }

  async #eraseEach(found: ReadonlyArray<rows.ChatRow & rows.RecordRow>): Promise<void> {
    for (let from = 0; from < found.length; ) {
      const { chat_id: id, user_id: user } = found[from] as rows.ChatRow;
      const rest = found.slice(from, from + ruleLimits.messages_batch_max);
      const other = rest.findIndex((row) => row.chat_id !== id || row.user_id !== user);
      const own = other < 0 ? rest : rest.slice(0, other);
      if (this.#isOwn(id)) await this.#eraseSome({ id, user }, own);
      from += own.length;
    }
  }

  /** Erases messages in a chat. Returns false if the chat no longer exists because a person's account was deleted. */
  async #eraseSome(chat: ChatRef, found: readonly rows.RecordRow[]): Promise<boolean> {
    try {
      const all = found.map(({ message_id: id, record }) => ({ id, record: unpackMessage(record) }));
      this.removed += await this.#erase(chat, all, this.#ageMs);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError && error.kind === 'chat_not_found')) throw error;
      return false;
    }
  }
}

export class Retention {
  readonly #context: StoreContext;
  readonly #erase: Erase;

  constructor(context: StoreContext, erase: Erase) {
    this.#context = context;
    this.#erase = erase;
  }

  /**
   * Removes messages older than `ageMs`, and their pins and reactions. Works for up to limits.retention_piece_ms per
   * shard. Drops a Postgres partition when all its messages are too old, and then counts its messages by Postgres's
   * estimate. Returns null if another process is already removing messages, or if the last pass ended less than
   * limits.retention_interval_ms ago.
   */
  async messages(ageMs: number): Promise<Removed | null> {
    const steps = await Promise.all(holding(this.#context.shards).map((shard) => this.#stepIn(shard, ageMs)));
    const taken = steps.filter((step) => step !== null);
    if (taken.length === 0) return null;
    return {
      removed: taken.reduce((sum, { removed }) => sum + removed, 0),
      more: taken.some(({ more }) => more),
    };
  }

  async #stepIn(shard: StoreShard, ageMs: number): Promise<Removed | null> {
    const { db, shards, keys } = this.#context;
    const isOwn = (chat: number) => shards.of(keys.partitions.of(chat)).id === shard.id;
    const step = new MessageStep(this.#context.time, shard, ageMs, this.#erase, isOwn);
    const done = await rows.takePiece(
      db,
      shard.id === 0 ? 'messages' : `messages ${shard.id}`,
      limits.retention_interval_ms,
      beginOf(''),
      // Adds the table if an earlier release stored the position, because earlier releases stored positions without a
      // table.
      (_, place) => step.run({ ...beginOf(''), ...place }),
    );
    return done && { removed: step.removed, more: !done.over };
  }

  /**
   * Removes uploaded files older than `ageMs`. Works in steps, as `messages` does. Keeps bots' pictures, current chat
   * photos, and the files of sticker sets and scheduled posts.
   */
  async files(ageMs: number, { list, remove }: AgedFiles): Promise<Removed | null> {
    const { db, time } = this.#context;
    const max = limits.retention_batch_max;
    let removed = 0;
    const step = await rows.takePiece(db, 'files', limits.retention_interval_ms, '', async (sql, after) => {
      const found = await list(after, max);
      const over = found.length < max;
      const end = over ? null : (found.at(-1)?.key ?? null);
      const listed = new Set(found.map(({ key }) => key));
      // Finds files that were counted against an upload limit but never written. The list of stored keys does not
      // contain them.
      const unwritten = await loadUnwritten(sql, ageMs, { after, end }, [...listed], max);
      const old = found.filter(({ at }) => at <= time.now() - ageMs).map(({ key }) => key);
      const aged = [...old, ...unwritten].sort();
      const kept = await rows.picturesAmong(sql, aged);
      const until = time.monotonic() + limits.retention_piece_ms;
      let place = after;
      for (const key of aged.filter((key) => !kept.has(key))) {
        if (time.monotonic() > until) return { place, over: false };
        // Checks again, because a bot may have added an old file to a sticker set in the meantime.
        const isFree = (await rows.picturesAmong(sql, [key])).size === 0;
        if (isFree && (await remove(key)) && listed.has(key)) removed++;
        place = key;
      }
      return { place: end ?? place, over };
    });
    return step && { removed, more: !step.over };
  }
}

/** Reads the messages of a chat: a range of ids from Redis, and the missing ones from Postgres. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { loadNewestMessages, newestMessage } from '../../postgres/chats/chats.js';
import { noReplicas } from '../../postgres/replicas.js';
import type { Sql } from '../../postgres/sql.js';
import { messageKinds, pack, unpackMessage } from '../core/codec.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Records } from '../core/records.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import type { ChatState, Chats } from './chats.js';

export interface HistoryPage {
  /** At most `limits.page_bytes_max` of records, replied and pinned messages not included. */
  readonly messages: readonly StoredMessage[];
  /** Where the next page starts, exclusive; 0 at the end. */
  readonly next: number;
  /** Adds to the given messages the ones that they reply to or pin. */
  relate(messages: readonly StoredMessage[]): Promise<StoredMessage[]>;
}

export interface History {
  /**
   * Messages of a chat below `before` (0: from the newest), newest first, at most `limit`. Null if there is no such
   * chat.
   */
  list(chat: ChatRef, before: number, limit: number): Promise<StoredMessage[] | null>;
  /** A page of messages with a limit in bytes as well. Reads no more messages than may fit. */
  page(chat: ChatRef, before: number, limit: number): Promise<HistoryPage | null>;
  /** The pinned message, from Redis or Postgres; null if no message is pinned. */
  pinned(state: ChatState): Promise<StoredMessage | null>;
}

/** Deleted messages leave gaps, so a page reads further ranges until it is full, at most this many. */
const rangesMax = 20;

export function createHistory(
  { shards, replicas, scripts, keys }: StoreContext,
  chats: Chats,
  records: Records,
): History {
  /** Records of a range, newest first, about `bytes` in total at most; null for ids without a message. */
  async function readRange(chat: ChatRef, before: number, limit: number, bytes: number) {
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const page = await scripts.call(
        'messages/read_range',
        keys.partitions.of(chat.id),
        {
          meta: keys.meta(keys.partitions.of(chat.id)),
          chat: keys.chat(chat),
          message: keys.messages(chat),
        },
        { before, limit, bytes },
      );
      if (page.status !== 'ok') {
        if (!(await chats.find(chat))) return null;
        continue;
      }
      const hot = page.rows as Array<Buffer | null>;
      const cold = hot.flatMap((row, i) => (row === null ? [page.first - i] : []));
      const load = (sql: Sql) => loadNewestMessages(sql, chat.id, chat.user, cold, bytes);
      const partition = keys.partitions.of(chat.id);
      const readCold = () => {
        const shard = shards.of(partition);
        // Only the control database has standbys.
        const source = shard.id === 0 ? replicas : noReplicas;
        return source.read(shard.db, partition, page.flushed, load);
      };
      const loaded = cold.length === 0 ? [] : await readCold();
      const byId = new Map(loaded.map((row) => [row.message_id, row.record]));
      const read = loaded.reduce((sum, { record }) => sum + (record?.length ?? 0), 0);
      // At the byte limit, ids below the lowest row may not have been read.
      const lowest = read < bytes ? 0 : Math.min(...byId.keys());
      return {
        first: page.first,
        peer: page.peer,
        rows: hot
          .slice(0, lowest === 0 ? hot.length : page.first - lowest + 1)
          .map((row, i) => row ?? byId.get(page.first - i) ?? null),
      };
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Where to continue, exclusive, when all ids from `cursor` to `lowest` are empty: a new incarnation skips 10,000 ids.
   * Messages just below the gap may be only in Redis, so its edge is tried first, then the newest message in Postgres.
   */
  async function belowHole(chat: ChatRef, cursor: number, lowest: number): Promise<number> {
    const stored = await newestMessage(shards.of(keys.partitions.of(chat.id)).db, chat.id, chat.user, cursor);
    const edge = lowest - limits.incarnation_sequence_skip - 1;
    return (edge < cursor && edge > stored ? edge : stored) + 1;
  }

  /** Messages below `before`, newest first: up to `limit`, or until they have `bytes` in total; and where to continue. */
  async function collect(chat: ChatRef, before: number, limit: number, bytes: number) {
    const out: StoredMessage[] = [];
    const seen = new Map<number, Buffer>();
    let read = 0;
    let cursor = before;
    /** The lowest id with a message so far: a gap starts below it. */
    let lowest = before;
    for (let n = 0; n < rangesMax; n++) {
      const range = await readRange(chat, cursor, limit, Math.min(bytes, limits.script_read_bytes_max));
      if (range === null) return null;
      const { first, rows } = range;
      const last = rows.findLastIndex((row) => row !== null);
      if (last >= 0) lowest = first - last;
      else if (lowest === 0) lowest = first + 1;
      for (const [i, record] of rows.entries()) {
        if (record === null || out.length === limit || read >= bytes) continue;
        seen.set(first - i, record);
        const message = storedMessage(chat, first - i, record, range.peer, null);
        if (message.record.kind === messageKinds.deleted) continue;
        out.push(message);
        read += record.length;
      }
      const below = first - rows.length + 1;
      cursor = last < 0 && rows.length > 0 ? await belowHole(chat, below, lowest) : below;
      if (rows.length === 0) cursor = 0;
      if (out.length >= limit || read >= bytes || cursor <= 1) break;
    }
    return { out, seen, read, cursor };
  }

  return {
    async list(chat, before, limit) {
      const found = await collect(chat, before, limit, Number.POSITIVE_INFINITY);
      return found && records.relate(chat, found.out, found.seen);
    },
    async page(chat, before, limit) {
      // Read one more message than fits, to know whether another page follows.
      const found = await collect(chat, before, limit + 1, limits.page_bytes_max);
      if (found === null) return null;
      const { out, seen, read, cursor } = found;
      const isFull = out.length > limit || read >= limits.page_bytes_max;
      const messages = isFull && out.length > 1 ? out.slice(0, -1) : out;
      const next = isFull ? (messages.at(-1)?.id ?? 0) : cursor;
      return {
        messages,
        next: next <= 1 ? 0 : next,
        relate: (some) => records.relate(chat, some, seen),
      };
    },
    async pinned({ chat, pinned, profile }) {
      if (pinned === 0) return null;
      const bytes = (await records.read(chat, [pinned])).get(pinned);
      if (bytes === undefined || unpackMessage(bytes).kind === messageKinds.deleted) return null;
      const [message] = await records.relate(
        chat,
        [storedMessage(chat, pinned, bytes, pack(profile), null)],
        new Map(),
      );
      return message ?? null;
    },
  };
}

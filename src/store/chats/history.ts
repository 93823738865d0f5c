/** Reading messages of a chat: an id range from Redis, and from Postgres what is cold. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { loadMessages, newestMessage } from '../../postgres/chats.js';
import { messageKinds, pack, unpackMessage } from '../core/codec.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Records } from '../core/records.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import type { ChatState, Chats } from './chats.js';

export interface History {
  /** Newest first, below `before` (0: from the newest), at most `limit`. Null when there is no such chat. */
  list(chat: ChatRef, before: number, limit: number): Promise<StoredMessage[] | null>;
  /** The pinned message, hot or cold; null for none. */
  pinned(state: ChatState): Promise<StoredMessage | null>;
}

/** Deleted messages leave holes: a page reads on until it is full, at most this often. */
const rangesMax = 20;

export function createHistory({ db, scripts, keys }: StoreContext, chats: Chats, records: Records): History {
  /** Records of a range, newest first; null where there is no message. */
  async function readRange(chat: ChatRef, before: number, limit: number) {
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const page = await scripts.call(
        'messages/read_range',
        keys.partitions.of(chat.id),
        {
          meta: keys.meta(keys.partitions.of(chat.id)),
          chat: keys.chat(chat),
          message: keys.messages(chat),
        },
        { before, limit },
      );
      if (page.status !== 'ok') {
        if (!(await chats.find(chat))) return null;
        continue;
      }
      const hot = page.rows as Array<Buffer | null>;
      const cold = hot.flatMap((row, i) => (row === null ? [page.first - i] : []));
      const loaded = cold.length === 0 ? [] : await loadMessages(db, chat.id, chat.user, cold);
      const byId = new Map(loaded.map((row) => [row.message_id, row.record]));
      return {
        first: page.first,
        peer: page.peer,
        rows: hot.map((row, i) => row ?? byId.get(page.first - i) ?? null),
      };
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Where to read on, exclusive, when all ids from `cursor` up to `lowest` are empty: an incarnation skips 10,000 ids.
   * Below them may lie what is in Redis alone, so their edge is looked at first, then the newest that Postgres has.
   */
  async function belowHole(chat: ChatRef, cursor: number, lowest: number): Promise<number> {
    const stored = await newestMessage(db, chat.id, chat.user, cursor);
    const edge = lowest - limits.incarnation_sequence_skip - 1;
    return (edge < cursor && edge > stored ? edge : stored) + 1;
  }

  return {
    async list(chat, before, limit) {
      const out: StoredMessage[] = [];
      const seen = new Map<number, Buffer>();
      let cursor = before;
      /** Lowest id that was seen: skipped ids end below it. */
      let lowest = before;
      for (let n = 0; n < rangesMax; n++) {
        const range = await readRange(chat, cursor, limit);
        if (range === null) return null;
        const { first, rows } = range;
        const last = rows.findLastIndex((row) => row !== null);
        if (last >= 0) lowest = first - last;
        else if (lowest === 0) lowest = first + 1;
        for (const [i, bytes] of rows.entries()) {
          if (bytes === null || out.length === limit) continue;
          seen.set(first - i, bytes);
          const message = storedMessage(chat, first - i, bytes, range.peer, null);
          if (message.record.kind !== messageKinds.deleted) out.push(message);
        }
        const below = first - rows.length + 1;
        cursor = last < 0 && rows.length > 0 ? await belowHole(chat, below, lowest) : below;
        if (out.length >= limit || cursor <= 1 || rows.length === 0) break;
      }
      return records.relate(chat, out, seen);
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

/** Reading messages of a chat: an id range from Redis, and from Postgres what is cold. */
import { fail } from '../errors.js';
import { loadMessages } from '../postgres/chats.js';
import type { Chats } from './chats.js';
import { messageKinds } from './codec.js';
import { fillAttemptsMax, type StoreContext } from './context.js';
import type { ChatRef } from './keys.js';
import { type StoredMessage, storedMessage } from './stored_message.js';

export interface History {
  /** Newest first, below `before` (0: from the newest), at most `limit`. Null when there is no such chat. */
  list(chat: ChatRef, before: number, limit: number): Promise<StoredMessage[] | null>;
}

/** Deleted messages leave holes: a page reads on until it is full, at most this often. */
const rangesMax = 20;

export function createHistory({ db, scripts, keys }: StoreContext, chats: Chats): History {
  /** Records of a range, newest first; null where there is no message. */
  async function readRange(chat: ChatRef, before: number, limit: number) {
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const page = await scripts.call(
        'messages/read_range',
        keys.partitions.of(chat.id),
        { chat: keys.chat(chat), message: keys.messages(chat) },
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

  return {
    async list(chat, before, limit) {
      const out: StoredMessage[] = [];
      let cursor = before;
      for (let n = 0; n < rangesMax; n++) {
        const range = await readRange(chat, cursor, limit);
        if (range === null) return null;
        for (const [i, bytes] of range.rows.entries()) {
          if (bytes === null || out.length === limit) continue;
          const message = storedMessage(chat, range.first - i, bytes, range.peer, null);
          if (message.record.kind !== messageKinds.deleted) out.push(message);
        }
        cursor = range.first - range.rows.length + 1;
        if (out.length >= limit || cursor <= 1 || range.rows.length === 0) break;
      }
      return out;
    },
  };
}

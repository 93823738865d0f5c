/**
 * Loads the messages of a chat. Reads a range of ids from Redis, and loads the messages that are not in Redis from
 * Postgres.
 */
import { fail } from '../../errors.js';
import { loadNewestMessages, newestMessage } from '../../postgres/chats/chats.js';
import { ruleLimits } from '../../rules/limits.js';
import { messageKinds, pack } from '../core/codec.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';
import type { Records } from '../core/records.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import { storeLimits as limits } from '../limits.js';
import type { ChatState, Chats } from './chats.js';

export interface HistoryPage {
  /**
   * The messages of a page, at most `ruleLimits.page_bytes_max` bytes together. Replied-to and pinned messages do not
   * count towards this limit.
   */
  readonly messages: readonly StoredMessage[];
  /** The next page has ids below this id. 0 if this page is the last. */
  readonly next: number;
  relate(messages: readonly StoredMessage[]): Promise<StoredMessage[]>;
}

/**
 * How many ranges of ids one page may read. Deleted messages leave gaps in the ids, so a page reads further ranges
 * until it is full.
 */
const rangesMax = 20;

interface Range {
  readonly first: number;
  readonly peer: Buffer;
  readonly rows: ReadonlyArray<Buffer | null>;
}

/** Collects messages, newest first, until there are `limit` messages or `bytes` bytes. */
class Collected {
  readonly #limit: number;
  readonly #bytes: number;
  #read = 0;
  readonly messages: StoredMessage[] = [];
  readonly seen = new Map<number, Buffer>();
  cursor: number;

  constructor(before: number, limit: number, bytes: number) {
    this.cursor = before;
    this.#limit = limit;
    this.#bytes = bytes;
  }

  get isFull(): boolean {
    return this.messages.length === this.#limit || this.#read >= this.#bytes;
  }

  add(chat: ChatRef, { first, peer, rows }: Range): void {
    for (const [i, record] of rows.entries()) {
      if (this.isFull) return;
      if (record === null) continue;
      this.seen.set(first - i, record);
      const message = storedMessage(chat, first - i, record, peer, null);
      if (message.record.kind === messageKinds.deleted) continue;
      this.messages.push(message);
      this.#read += record.length;
    }
  }
}

export class History {
  readonly #context: StoreContext;
  readonly #chats: Chats;
  readonly #records: Records;

  constructor(context: StoreContext, chats: Chats, records: Records) {
    this.#context = context;
    this.#chats = chats;
    this.#records = records;
  }

  /**
   * Returns up to `limit` messages in a chat with ids below `before`, newest first, or null if the chat does not exist.
   * If `before` is 0, starts at the newest message.
   */
  async list(chat: ChatRef, before: number, limit: number): Promise<StoredMessage[] | null> {
    const found = await this.#collect(chat, before, limit, Number.POSITIVE_INFINITY);
    return found && this.#records.relate(chat, found.messages, found.seen);
  }

  /** Returns a page of at most `limit` messages and `ruleLimits.page_bytes_max` bytes. */
  async page(chat: ChatRef, before: number, limit: number): Promise<HistoryPage | null> {
    const found = await this.#collect(chat, before, limit + 1, ruleLimits.page_bytes_max);
    if (found === null) return null;
    const { isFull, seen, cursor } = found;
    const messages = isFull && found.messages.length > 1 ? found.messages.slice(0, -1) : found.messages;
    const next = isFull ? (messages.at(-1)?.id ?? 0) : cursor;
    return {
      messages,
      next: next <= 1 ? 0 : next,
      relate: (some) => this.#records.relate(chat, some, seen),
    };
  }

  async pinned(state: ChatState): Promise<StoredMessage | null> {
    const [message = null] = state.pinned === 0 ? [] : await this.#some(state, [state.pinned]);
    return message;
  }

  keyboards(state: ChatState): Promise<StoredMessage[]> {
    return this.#some(state, state.keyboards);
  }

  async #some({ chat, profile }: ChatState, ids: readonly number[]): Promise<StoredMessage[]> {
    const found = await this.#records.read(chat, ids);
    const peer = pack(profile);
    const messages = ids.flatMap((id) => {
      const bytes = found.get(id);
      return bytes === undefined ? [] : [storedMessage(chat, id, bytes, peer, null)];
    });
    const present = messages.filter(({ record }) => record.kind !== messageKinds.deleted);
    return this.#records.relate(chat, present, new Map());
  }

  async #collect(chat: ChatRef, before: number, limit: number, bytes: number): Promise<Collected | null> {
    const found = new Collected(before, limit, bytes);
    /** The lowest id with a message so far. A gap in the ids starts directly below it. */
    let lowest = before;
    for (let n = 0; n < rangesMax; n++) {
      const most = Math.min(bytes, limits.script_read_bytes_max);
      const range = await this.#readRange(chat, found.cursor, limit, most);
      if (range === null) return null;
      const { first, rows } = range;
      found.add(chat, range);
      const last = rows.findLastIndex((row) => row !== null);
      if (last >= 0) lowest = first - last;
      else if (lowest === 0) lowest = first + 1;
      const below = first - rows.length + 1;
      if (rows.length === 0) found.cursor = 0;
      else found.cursor = last < 0 ? await this.#belowHole(chat, below, lowest) : below;
      if (found.isFull || found.cursor <= 1) break;
    }
    return found;
  }

  /**
   * Returns the records of a range of ids, newest first, up to about `bytes` bytes together. Returns null if the chat
   * does not exist.
   */
  async #readRange(chat: ChatRef, before: number, limit: number, bytes: number): Promise<Range | null> {
    const { shards, replicas, scripts, keys } = this.#context;
    const partition = keys.partitions.of(chat.id);
    const at = { meta: keys.meta(partition), chat: keys.chat(chat), message: keys.messages(chat) };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const page = await scripts.call('messages/read_range', partition, at, { before, limit, bytes });
      if (page.status !== 'ok') {
        if (!(await this.#chats.find(chat))) return null;
        continue;
      }
      const { first, peer } = page;
      const hot = page.rows as Array<Buffer | null>;
      const cold = hot.flatMap((row, i) => (row === null ? [first - i] : []));
      if (cold.length === 0) return { first, peer, rows: hot };
      const { id } = shards.of(partition);
      const loaded = await replicas.read(id, shards.at(partition), partition, page.flushed, (sql) =>
        loadNewestMessages(sql, chat.id, chat.user, cold, bytes),
      );
      const byId = new Map(loaded.map((row) => [row.message_id, row.record]));
      const read = loaded.reduce((sum, { record }) => sum + (record?.length ?? 0), 0);
      // If the byte limit ended the query early, the messages below the lowest loaded message were not read. Leaves out
      // their ids.
      const count = read < bytes ? hot.length : first - Math.min(...byId.keys()) + 1;
      return { first, peer, rows: hot.slice(0, count).map((row, i) => row ?? byId.get(first - i) ?? null) };
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Returns the value of `before` with which to continue if no id from `cursor` to `lowest` has a message. Ids may have
   * such a gap, because each new incarnation skips `incarnation_sequence_skip` ids. Continues below the gap, where
   * messages may be only in Redis. If Postgres has a message inside the gap, continues at that message.
   */
  async #belowHole(chat: ChatRef, cursor: number, lowest: number): Promise<number> {
    const { shards, keys } = this.#context;
    const stored = await newestMessage(shards.at(keys.partitions.of(chat.id)), chat.id, chat.user, cursor);
    const edge = lowest - limits.incarnation_sequence_skip - 1;
    return (edge < cursor && edge > stored ? edge : stored) + 1;
  }
}

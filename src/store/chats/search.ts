/**
 * Searches the messages in a person's chats. Postgres selects candidates among the messages that it already stores.
 * Each candidate is then checked against its current record, so that a message is never found by a text that was edited
 * or deleted.
 */
import {
  boundStatements,
  loadLastIds,
  type SearchedRow,
  type SearchRange,
  searchRanges,
} from '../../postgres/messages/search.js';
import { byShard } from '../../postgres/shards.js';
import { ruleLimits } from '../../rules/limits.js';
import { containsWords } from '../../rules/search.js';
import { messageKinds } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { piecesOf } from '../core/groups.js';
import { type ChatRef, chatText } from '../core/keys.js';
import type { Records } from '../core/records.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import { storeLimits as limits } from '../limits.js';
import type { Chats } from './chats.js';

export interface FoundMessages {
  /** The found messages, chat by chat, newest first. */
  readonly messages: readonly StoredMessage[];
  /** The id below which a search can continue in the last chat. 0 if that chat is done. */
  readonly next: number;
}

export interface FoundInChats extends FoundMessages {
  /** The number of searched chats. The last one may be unfinished (see `next`). */
  readonly chats: number;
}

const nothing: Pick<SearchedRow, 'ids' | 'isCut' | 'bottom'> = { ids: [], isCut: false, bottom: 0 };

/** How many candidates are loaded at a time. */
const candidatesAtOnce = 20;

const textsOf = ({ content: { text, media } }: StoredMessage['record']): string[] =>
  [text, media?.name, media?.title, media?.performer].filter((each) => each !== undefined);

/** Decides how many rows each step of a page reads, and when the page ends. */
class Steps {
  readonly #time: StoreContext['time'];
  readonly #began: number;
  #rows: number = limits.search_step_rows_min;
  #left: number = limits.search_rows_max;

  constructor(time: StoreContext['time']) {
    this.#time = time;
    this.#began = time.monotonic();
  }

  /** Returns how many rows the current step may read. */
  rows(): number {
    return Math.min(this.#rows, this.#left);
  }

  /** Begins the next step. Returns false if the page has used up its rows or its time. */
  next(): boolean {
    this.#left -= this.rows();
    this.#rows = Math.min(this.#rows * 2, limits.search_step_rows_max);
    return this.#left > 0 && this.#time.monotonic() - this.#began < limits.search_steps_ms;
  }
}

export class Search {
  readonly #context: StoreContext;
  readonly #chats: Pick<Chats, 'find'>;
  readonly #records: Pick<Records, 'read'>;

  constructor(context: StoreContext, chats: Pick<Chats, 'find'>, records: Pick<Records, 'read'>) {
    this.#context = context;
    this.#chats = chats;
    this.#records = records;
  }

  /**
   * Finds messages of one chat with ids below `before`, or from the newest message if `before` is 0. Reads up to
   * limits.search_rows_max rows, and starts no new step after limits.search_steps_ms. The answer may therefore have a
   * `next` but no messages. The words must be in the form that `foldCase` returns. Error: `unavailable` if a step takes
   * Postgres longer than limits.search_timeout_ms.
   */
  async inChat(
    chat: ChatRef,
    words: readonly string[],
    before: number,
    limit: number,
  ): Promise<FoundMessages> {
    const steps = new Steps(this.#context.time);
    const ids: number[] = [];
    let range = this.#start(chat, before);
    let rest = 0;
    do {
      const [searched] = await this.#select([{ ...range, rows: steps.rows() }], words, limit + 1);
      const { bottom, more } = searched as SearchedRow;
      ids.push(...(searched as SearchedRow).ids);
      rest = more ? bottom : 0;
      range = this.#start(chat, bottom);
    } while (rest > 0 && ids.length <= limit && steps.next());
    const end = ids.length > limit ? (ids[limit - 1] as number) : rest;
    const { messages, last } = await this.#confirm(chat, ids.slice(0, limit), words, limit);
    return { messages, next: last ?? end };
  }

  /**
   * Finds messages in several chats, one chat after the other, up to limits.search_hits_per_chat messages per chat.
   * Reads only the newest limits.search_rows_per_chat_max rows of a chat. If `before` is not 0, finds only ids below
   * `before` in the first chat. Starts no new step after limits.search_steps_ms. Error: `unavailable` if a step takes
   * Postgres longer than limits.search_timeout_ms.
   */
  async inChats(
    chats: readonly ChatRef[],
    words: readonly string[],
    before: number,
    limit: number,
  ): Promise<FoundInChats> {
    const steps = new Steps(this.#context.time);
    const ranges = await this.#rangesOf(chats.slice(0, limits.search_chats_max), before);
    const messages: StoredMessage[] = [];
    let searched = 0;
    do {
      const step = this.#stepOf(ranges.slice(searched), steps.rows());
      const byChat = await this.#selectByChat(step, words);
      for (const { ref } of step) {
        searched++;
        const { ids, isCut, bottom } = byChat.get(chatText(ref)) ?? nothing;
        const most = Math.min(limits.search_hits_per_chat, limit - messages.length);
        const found = await this.#confirm(ref, ids, words, most);
        messages.push(...found.messages);
        // If candidates of this chat remain, the next page continues in this chat.
        const rest = ids.length === candidatesAtOnce ? (ids.at(-1) as number) : isCut ? bottom : 0;
        const next = found.last ?? (found.messages.length < most ? rest : 0);
        if (next > 0 || messages.length >= limit) return { messages, chats: searched, next };
      }
    } while (searched < ranges.length && steps.next());
    return { messages, chats: searched, next: 0 };
  }

  /**
   * Returns as many of the first ranges as one step may read: about `rows` rows together. The last returned range may
   * exceed this number.
   */
  #stepOf<T extends SearchRange>(ranges: readonly T[], rows: number): readonly T[] {
    let count = 0;
    for (let left = rows; left > 0 && count < ranges.length; count++)
      left -= (ranges[count] as T).rows + limits.search_chat_rows;
    return ranges.slice(0, count);
  }

  async #selectByChat(
    ranges: ReadonlyArray<SearchRange & { readonly ref: ChatRef }>,
    words: readonly string[],
  ): Promise<ReadonlyMap<string, SearchedRow>> {
    const asked = ranges.filter(({ rows }) => rows > 0);
    const searched = await this.#select(asked, words, candidatesAtOnce);
    return new Map(asked.map(({ ref }, i) => [chatText(ref), searched[i] as SearchedRow]));
  }

  #start(ref: ChatRef, before: number) {
    return { ref, chat: ref.id, user: ref.user, before: before === 0 ? Number.MAX_SAFE_INTEGER : before };
  }

  /**
   * Distributes the rows that one search may read among the chats, in their order. Omits chats for which no rows
   * remain.
   */
  async #rangesOf(chats: readonly ChatRef[], before: number) {
    const last = new Map<string, number>();
    await Promise.all(
      this.#divided(chats, ({ id }) => id).map(async ({ sql, items }) => {
        for (const { chat_id, user_id, last_message_id } of await loadLastIds(sql, items))
          last.set(chatText({ id: chat_id, user: user_id }), last_message_id);
      }),
    );
    const ranges: Array<SearchRange & { readonly ref: ChatRef }> = [];
    let left = limits.search_rows_max;
    for (const [i, ref] of chats.entries()) {
      const rows = Math.min(limits.search_rows_per_chat_max, last.get(chatText(ref)) ?? 0);
      if (rows > left) break;
      ranges.push({ ...this.#start(ref, i === 0 ? before : 0), rows });
      left -= rows;
    }
    return ranges;
  }

  #divided<T>(items: readonly T[], chatOf: (item: T) => number) {
    const { shards, keys } = this.#context;
    const partitionOf = (item: T) => keys.partitions.of(chatOf(item));
    return [...byShard(shards, items, partitionOf).values()].map((own) => ({
      sql: shards.at(...new Set(own.map(partitionOf))),
      items: own,
    }));
  }

  /** Searches the ranges in Postgres. The answers have the same order as the ranges. */
  async #select(
    ranges: readonly SearchRange[],
    words: readonly string[],
    found: number,
  ): Promise<readonly SearchedRow[]> {
    const answers = new Map<SearchRange, SearchedRow>();
    await Promise.all(
      this.#divided(ranges, ({ chat }) => chat).map(async ({ sql, items }) => {
        const rows = await sql.transaction(async (tx) => {
          await boundStatements(tx, limits.search_timeout_ms);
          return searchRanges(tx, items, words, found);
        });
        for (const row of rows) answers.set(items[row.place - 1] as SearchRange, row);
      }),
    );
    return ranges.map((range) => answers.get(range) as SearchedRow);
  }

  /**
   * Returns up to `most` of these messages. Leaves out messages whose current records do not match. If the page is
   * full, `last` is the id of the last checked message, and the next page continues there. Otherwise `last` is null.
   */
  async #confirm(chat: ChatRef, ids: readonly number[], words: readonly string[], most: number) {
    const messages: StoredMessage[] = [];
    const state = ids.length === 0 ? null : await this.#chats.find(chat);
    if (state === null) return { messages, last: null };
    let bytes = 0;
    for (const piece of piecesOf(ids, candidatesAtOnce)) {
      const records = await this.#records.read(chat, piece);
      for (const id of piece) {
        const record = records.get(id);
        if (record === undefined) continue;
        const message = storedMessage(chat, id, record, state.profile, null);
        const { kind } = message.record;
        if (kind === messageKinds.deleted || !containsWords(textsOf(message.record), words)) continue;
        messages.push(message);
        bytes += record.length;
        if (messages.length >= most) return { messages, last: null };
        if (bytes >= ruleLimits.page_bytes_max) return { messages, last: id };
      }
    }
    return { messages, last: null };
  }
}

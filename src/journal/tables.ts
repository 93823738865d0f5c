/** What each kind of journal entry is in Postgres and in Redis. A new kind is one row of `journalTables`. */
import { isTombstone, messageDay } from '../store/core/codec.js';
import type { ChatRef, Keys } from '../store/core/keys.js';

export interface JournalTable {
  /** First part of the entity: `msg` of `msg:12.5:7`. */
  readonly kind: string;
  /** Table with these key columns (bigint), `version`, `record` and `deleted_at`. */
  readonly table: string;
  readonly columns: readonly string[];
  /** The table of what its rows are parts of, by its key columns: they are purged with it. */
  readonly partOf?: string;
  /** Whether the first two columns are a chat, spelled `id` or `id.user`: only there an id may be below zero. */
  readonly chat?: true;
  /** Where the table lies in partitions by a column `day`, which is part of its key and never changes. */
  readonly dated?: {
    /** Days since 1970 in UTC, of any image that is not empty. */
    day(image: Buffer): number;
    isTombstone(image: Buffer): boolean;
  };
  /** The STRING whose header carries the version, where Redis keeps the entity. */
  record?(keys: Keys, key: readonly number[]): string;
  /** Where the last column counts up for the columns before it: what to keep of the greatest value. */
  readonly sequence?: {
    readonly table: string;
    readonly columns: readonly string[];
    readonly last: string;
    /** The HASH whose field `v` is the version of the last entry of the sequence, where one is evicted with it. */
    state?(keys: Keys, key: readonly number[]): string;
  };
}

const chatOf = ([id = 0, user = 0]: readonly number[]): ChatRef => ({ id, user });

const messages: JournalTable = {
  kind: 'msg',
  table: 'messages',
  columns: ['chat_id', 'user_id', 'message_id'],
  chat: true,
  dated: { day: messageDay, isTombstone },
  record: (keys, key) => keys.message(chatOf(key), key[2] as number),
  sequence: {
    table: 'chat_sequences',
    columns: ['chat_id', 'user_id'],
    last: 'last_message_id',
    state: (keys, key) => keys.chat(chatOf(key)),
  },
};

const deadUpdates: JournalTable = {
  kind: 'dead',
  table: 'dead_updates',
  columns: ['bot_id', 'update_id'],
};

/** The pin is kept in the chat's own HASH, which its entries name as their state. */
const pins: JournalTable = {
  kind: 'pin',
  table: 'chat_pins',
  columns: ['chat_id', 'user_id'],
  chat: true,
};

const posts: JournalTable = {
  kind: 'post',
  table: 'posts',
  columns: ['partition', 'number'],
  sequence: { table: 'post_sequences', columns: ['partition'], last: 'last_number' },
};

/** Who reacted; the HASH of those who acted lately is named by the entries as their state. */
const reactions: JournalTable = {
  kind: 'react',
  table: 'post_reactions',
  partOf: 'posts',
  columns: ['partition', 'number', 'user_id', 'emoji'],
};

const tallies: JournalTable = {
  kind: 'tally',
  table: 'post_tallies',
  partOf: 'posts',
  columns: ['partition', 'number', 'emoji'],
};

/** Which kinds of updates a bot asked for; the state of its queue, which is never evicted, has it too. */
const masks: JournalTable = {
  kind: 'mask',
  table: 'bot_update_masks',
  columns: ['bot_id'],
};

export const journalTables: readonly JournalTable[] = [
  messages,
  deadUpdates,
  pins,
  posts,
  reactions,
  tallies,
  masks,
];

const byKind = new Map(journalTables.map((table) => [table.kind, table]));

export interface Entity {
  readonly table: JournalTable;
  readonly key: readonly number[];
}

const zero = 48;
const nine = 57;
const colon = 58;
const dot = 46;
const minus = 45;

/**
 * Reads an entity as the journal names it: its kind, then its columns, of which an absent user of a chat is 0. Null for an
 * unknown kind, or a key that is malformed or no exact integer: what is named so goes into quarantine. By hand, since a pattern
 * and its groups took ten times as long, for each row that is written.
 */
export function parseEntity(text: string): Entity | null {
  let at = text.indexOf(':');
  const table = byKind.get(text.slice(0, at));
  if (table === undefined) return null;
  const key: number[] = [];
  while (key.length < table.columns.length) {
    const isUser = table.chat === true && key.length === 1;
    if (isUser && text.charCodeAt(at) !== dot) {
      key.push(0);
      continue;
    }
    if (text.charCodeAt(at) !== (isUser ? dot : colon)) return null;
    const negative = table.chat === true && key.length === 0 && text.charCodeAt(at + 1) === minus;
    const start = at + (negative ? 2 : 1);
    let value = 0;
    for (at = start; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code < zero || code > nine) break;
      value = value * 10 + (code - zero);
    }
    if (at === start || !Number.isSafeInteger(value)) return null;
    key.push(negative ? -value : value);
  }
  return at === text.length ? { table, key } : null;
}

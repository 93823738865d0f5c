/** How each kind of journal entry is stored in Postgres and in Redis. A new kind is one row of `journalTables`. */
import { isTombstone, messageDay } from '../store/core/codec.js';
import type { ChatRef, Keys } from '../store/core/keys.js';

export interface JournalTable {
  /** First part of the entity's name: `msg` of `msg:12.5:7`. */
  readonly kind: string;
  /** Table with these key columns (bigint), `version`, `record` and `deleted_at`. */
  readonly table: string;
  readonly columns: readonly string[];
  /**
   * The table of the wholes, if rows of this one are parts: `post_reactions` are parts of `posts`. Parts are purged
   * with their whole.
   */
  readonly partOf?: string;
  /** Whether the first two columns are a chat, written `id` or `id.user`. Only a chat id may be negative. */
  readonly chat?: true;
  /** For a table that is partitioned by a column `day`. The day is part of the key and never changes. */
  readonly dated?: {
    /** The day of an image that is not empty, in days since 1970 in UTC. */
    day(image: Buffer): number;
    isTombstone(image: Buffer): boolean;
  };
  /** Key of the STRING whose header carries the version, if Redis keeps the entity in one. */
  record?(keys: Keys, key: readonly number[]): string;
  /** For a table whose last key column counts up per value of the other columns: where the greatest value is stored. */
  readonly sequence?: {
    readonly table: string;
    readonly columns: readonly string[];
    readonly last: string;
    /** Key of the HASH whose field `v` is the version of the sequence's last entry, if that HASH is evicted. */
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

/** The pin of a chat. Redis keeps it in the chat's own HASH, which journal entries name as their state. */
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

/** Reactions by user. Journal entries name the HASH of recent reactions as their state. */
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

/** The kinds of updates that a bot asked for. The state of its queue, which is never evicted, has them too. */
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
 * Parses the name of an entity in the journal: its kind, then its key columns; the user of a chat is 0 if absent.
 * Returns null for an unknown kind and for a key that is malformed or not an exact integer; such entries go to
 * quarantine. This loop replaces a regular expression that took ten times as long per row.
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

/** What each kind of journal entry is in Postgres and in Redis. A new kind is one row of `journalTables`. */
import type { ChatRef, Keys } from '../store/keys.js';

export interface JournalTable {
  /** First part of the entity: `msg` of `msg:12.5:7`. */
  readonly kind: string;
  /** Table with these key columns (bigint), `version`, `record` and `deleted_at`. */
  readonly table: string;
  readonly columns: readonly string[];
  /** The table of what its rows are parts of, by its key columns: they are purged with it. */
  readonly partOf?: string;
  /** Reads an entity; its groups are the columns in their order, an absent one is 0. What does not match, or is no
   * exact integer, puts the entry into quarantine. */
  readonly pattern: RegExp;
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
  pattern: /^msg:(-?\d+)(?:\.(\d+))?:(\d+)$/,
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
  pattern: /^dead:(\d+):(\d+)$/,
};

/** The pin is kept in the chat's own HASH, which its entries name as their state. */
const pins: JournalTable = {
  kind: 'pin',
  table: 'chat_pins',
  columns: ['chat_id', 'user_id'],
  pattern: /^pin:(-?\d+)(?:\.(\d+))?$/,
};

const posts: JournalTable = {
  kind: 'post',
  table: 'posts',
  columns: ['partition', 'number'],
  pattern: /^post:(\d+):(\d+)$/,
  sequence: { table: 'post_sequences', columns: ['partition'], last: 'last_number' },
};

/** Who reacted; the HASH of those who acted lately is named by the entries as their state. */
const reactions: JournalTable = {
  kind: 'react',
  table: 'post_reactions',
  partOf: 'posts',
  columns: ['partition', 'number', 'user_id', 'emoji'],
  pattern: /^react:(\d+):(\d+):(\d+):(\d+)$/,
};

const tallies: JournalTable = {
  kind: 'tally',
  table: 'post_tallies',
  partOf: 'posts',
  columns: ['partition', 'number', 'emoji'],
  pattern: /^tally:(\d+):(\d+):(\d+)$/,
};

export const journalTables: readonly JournalTable[] = [
  messages,
  deadUpdates,
  pins,
  posts,
  reactions,
  tallies,
];

const byKind = new Map(journalTables.map((table) => [table.kind, table]));

export interface Entity {
  readonly table: JournalTable;
  readonly key: readonly number[];
}

/** Reads an entity as the journal names it. Null for an unknown kind or a key that is malformed. */
export function parseEntity(text: string): Entity | null {
  const table = byKind.get(text.slice(0, text.indexOf(':')));
  const found = table?.pattern.exec(text);
  if (!table || !found) return null;
  const key: number[] = [];
  for (let i = 1; i < found.length; i++) {
    const value = Number(found[i] ?? 0);
    if (!Number.isSafeInteger(value)) return null;
    key.push(value);
  }
  return { table, key };
}

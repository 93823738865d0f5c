/**
 * Defines how each kind of journal entry is stored in Postgres and in Redis. A new kind needs one row in
 * `journalTables`.
 */
import { isTombstone, messageDay } from '../store/core/codec.js';
import type { ChatRef, Keys } from '../store/core/keys.js';

export interface JournalTable {
  /** The first part of an entity's name, for example `msg` in `msg:12.5:7`. */
  readonly kind: string;
  /**
   * The table. Besides the bigint key columns in `columns`, it has the columns `version`, `record` and `deleted_at`.
   */
  readonly table: string;
  readonly columns: readonly string[];
  /**
   * The table whose records these rows are parts of. For example, `post_reactions` are parts of `posts`. Parts are
   * purged together with their record.
   */
  readonly partOf?: string;
  /**
   * Set if the first two key columns identify a chat. The name of an entity then contains the chat as `id`, or as
   * `id.user` for a direct chat. Ids in other columns are never negative.
   */
  readonly chat?: true;
  /** Set only if the table is partitioned by its column `day`. The day is part of the key and never changes. */
  readonly dated?: {
    /** Returns the day of the record as the number of days since 1970. */
    day(image: Buffer): number;
    isTombstone(image: Buffer): boolean;
  };
  /**
   * Returns the key of the STRING that stores the entity and whose header contains the version. Absent if Redis does
   * not store the entity as a STRING.
   */
  record?(keys: Keys, key: readonly number[]): string;
  /**
   * The table and column that store the greatest number of a sequence. Set only if the last key column is a running
   * number. The other key columns identify the sequence.
   */
  readonly sequence?: {
    readonly table: string;
    readonly columns: readonly string[];
    readonly last: string;
    /**
     * Returns the key of the HASH whose field `v` is the version of the sequence's last entry. Absent if this HASH must
     * never leave Redis.
     */
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

/**
 * The pinned message of a chat, and the chat's messages with reply keyboards. Redis stores them in the HASH of the
 * chat. The journal entries contain the key of this HASH in `state`.
 */
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

/** The reactions on posts. Their journal entries contain the key of the HASH with recent reactions in `state`. */
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

const polls: JournalTable = {
  kind: 'poll',
  table: 'polls',
  columns: ['partition', 'number'],
};

/** The votes for each option, the number of voters, and whether the poll was stopped. */
const pollResults: JournalTable = {
  kind: 'results',
  table: 'poll_results',
  partOf: 'polls',
  columns: ['partition', 'number'],
};

/** The votes in polls. Their journal entries contain the key of the HASH with recent voters in `state`. */
const pollVotes: JournalTable = {
  kind: 'vote',
  table: 'poll_votes',
  partOf: 'polls',
  columns: ['partition', 'number', 'user_id'],
};

/**
 * The kinds of updates that a bot has asked for (`allowed_updates`). Redis also has them in the state of the bot's
 * queue, which always stays in Redis.
 */
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
  polls,
  pollResults,
  pollVotes,
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

function endOfDigits(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) >= zero && text.charCodeAt(at) <= nine) at++;
  return at;
}

/**
 * Parses the name of an entity in the journal. The name is the kind followed by the key columns. In a chat without a
 * user, the user column is 0. Returns null for an unknown kind, a malformed key or a number that is not exact; entries
 * with such names go to quarantine. Uses a loop, because a regular expression takes ten times as long per row.
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
    const start = at + 1;
    const isNegative = table.chat === true && key.length === 0 && text.charCodeAt(start) === minus;
    const digits = isNegative ? start + 1 : start;
    at = endOfDigits(text, digits);
    const value = Number(text.slice(start, at));
    if (at === digits || !Number.isSafeInteger(value)) return null;
    key.push(value);
  }
  return at === text.length ? { table, key } : null;
}

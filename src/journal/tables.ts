/** What each kind of journal entry is in Postgres and in Redis. A new kind is one row of `journalTables`. */
import { type ChatRef, chatText, type Keys, parseChat } from '../store/keys.js';

export interface JournalTable {
  /** First part of the entity: `msg` of `msg:12.5:7`. */
  readonly kind: string;
  /** Table with these key columns (bigint), `version`, `record` and `deleted_at`. */
  readonly table: string;
  readonly columns: readonly string[];
  /** The key that the rest of an entity names, in the order of the columns. Numbers that are not exact integers put
   * the entry into quarantine. */
  parse(rest: string): readonly number[];
  /** The STRING whose header carries the version, where Redis keeps the entity. */
  record?(keys: Keys, key: readonly number[]): string;
  /** Where the last column counts up for the columns before it: what to keep of the greatest value. */
  readonly sequence?: {
    readonly table: string;
    readonly columns: readonly string[];
    readonly last: string;
    /** The HASH whose field `v` is the version of the last entry of the sequence. */
    state(keys: Keys, key: readonly number[]): string;
  };
}

const chatOf = ([id = 0, user = 0]: readonly number[]): ChatRef => ({ id, user });

/** The parts of an entity, split at colons. */
function parts(rest: string, count: number): string[] {
  const found = rest.split(':');
  return found.length === count ? found : [];
}

/** The number that a text spells in the one way in which ids are written; NaN for any other text. */
function id(text = ''): number {
  const number = Number(text);
  return String(number) === text ? number : Number.NaN;
}

const messages: JournalTable = {
  kind: 'msg',
  table: 'messages',
  columns: ['chat_id', 'user_id', 'message_id'],
  parse(rest) {
    const [chat = '', message] = parts(rest, 2);
    const ref = parseChat(chat);
    return chatText(ref) === chat ? [ref.id, ref.user, id(message)] : [];
  },
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
  parse: (rest) => parts(rest, 2).map(id),
};

export const journalTables: readonly JournalTable[] = [messages, deadUpdates];

const byKind = new Map(journalTables.map((table) => [table.kind, table]));

export interface Entity {
  readonly table: JournalTable;
  readonly key: readonly number[];
}

/** Reads an entity as the journal names it. Null for an unknown kind or a key that is malformed. */
export function parseEntity(text: string): Entity | null {
  const colon = text.indexOf(':');
  const table = byKind.get(text.slice(0, colon));
  if (!table) return null;
  const key = table.parse(text.slice(colon + 1));
  return key.length === table.columns.length && key.every(Number.isSafeInteger) ? { table, key } : null;
}

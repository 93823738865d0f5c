/** Selects messages that may contain the words of a search query. */
import { hexWordPattern, wordPattern } from '../../rules/search.js';
import { fragment, type Sql } from '../sql.js';

export interface SearchRange {
  readonly chat: number;
  readonly user: number;
  /** Only messages with ids below this one are read, newest first. */
  readonly before: number;
  /** The maximum number of rows to read, including the rows of deleted messages. */
  readonly rows: number;
}

export interface SearchedRow {
  /** The position of the range in the argument `ranges`, counted from 1. */
  readonly place: number;
  /** The ids of messages that may contain all words, newest first. */
  readonly ids: readonly number[];
  /** The lowest id that was read, or 0 if the range has no rows. */
  readonly bottom: number;
  /** Whether the chat may have messages with ids below `bottom`. */
  readonly more: boolean;
  /** Whether the search of the range stopped early because the records that it read were too large. */
  readonly isCut: boolean;
}

/** The maximum total size of the records that are read for one range, in bytes. */
const bytes = fragment('(262144 + c.rows * 1024)');

/** Makes Postgres cancel any statement of this transaction that takes longer than `ms`. */
export const boundStatements = (tx: Sql, ms: number) => tx.run`
  select set_config('statement_timeout', ${`${ms}ms`}, true)`;

/**
 * Reads ranges of chats, newest first. A range ends after `rows` rows, or earlier if its records together are larger
 * than expected for that many rows. Returns up to `found` ids for each range. The words must be in the form that
 * `foldCase` returns.
 *
 * Postgres converts bytes to the form `hex` several times faster than to the form `escape`. Only the records that pass
 * the fast comparison are compared in the slow form.
 */
export function searchRanges(
  sql: Sql,
  ranges: readonly SearchRange[],
  words: readonly string[],
  found: number,
): Promise<SearchedRow[]> {
  const [hex, escaped] = [words.map(hexWordPattern), words.map(wordPattern)];
  return sql.rows<SearchedRow>`
    select c.place::int as place, coalesce(w.bottom, 0) as bottom, w.more, w.is_cut as "isCut",
      coalesce(w.ids[:${found}], '{}') as ids
    from unnest(${ranges.map(({ chat }) => chat)}::bigint[], ${ranges.map(({ user }) => user)}::bigint[],
        ${ranges.map(({ before }) => before)}::bigint[], ${ranges.map(({ rows }) => rows)}::bigint[])
        with ordinality as c (chat_id, user_id, before, rows, place),
      lateral (
        select min(message_id) filter (where above < ${bytes}) as bottom,
          count(*) = c.rows or coalesce(max(above) >= ${bytes}, false) as more,
          coalesce(max(above) >= ${bytes}, false) as is_cut,
          array_agg(message_id order by message_id desc) filter (where case
            when above >= ${bytes} or record is null then false
            when encode(record, 'hex') collate "C" like all (${hex}::text[])
              then encode(record, 'escape') collate "C" ilike all (${escaped}::text[])
            end) as ids
        from (
          select message_id, record,
            sum(size) over (order by message_id desc rows unbounded preceding) - size as above
          from (
            select message_id, record, coalesce(octet_length(record), 0) as size from messages m
            where m.chat_id = c.chat_id and m.user_id = c.user_id and m.message_id < c.before
            order by message_id desc limit c.rows) s) r) w
    order by c.place`;
}

export interface LastIdRow {
  readonly chat_id: number;
  readonly user_id: number;
  readonly last_message_id: number;
}

export const loadLastIds = (
  sql: Sql,
  chats: ReadonlyArray<{ readonly id: number; readonly user: number }>,
) => sql.rows<LastIdRow>`
  select chat_id, user_id, last_message_id
  from unnest(${chats.map(({ id }) => id)}::bigint[], ${chats.map(({ user }) => user)}::bigint[])
    as c (chat_id, user_id)
  join chat_sequences using (chat_id, user_id)`;

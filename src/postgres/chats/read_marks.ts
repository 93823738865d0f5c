/** SQL statements for read marks. A read mark is the last message that a person has read in a chat. */
import type { Sql } from '../sql.js';

export async function loadReadMarks(
  sql: Sql,
  user: number,
  chats: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await sql.rows<{ chat_id: number; message_id: number }>`
    select chat_id, message_id from read_marks where user_id = ${user} and chat_id = any(${chats})`;
  return new Map(rows.map(({ chat_id, message_id }) => [chat_id, message_id]));
}

/**
 * Moves the read mark forward. Never moves it back, because two of the person's windows may report in the wrong order.
 * Returns whether the mark moved.
 */
export const setReadMark = (sql: Sql, user: number, chat: number, message: number) => sql.some`
  insert into read_marks as present (user_id, chat_id, message_id) values (${user}, ${chat}, ${message})
  on conflict (user_id, chat_id) do update set message_id = excluded.message_id
   where present.message_id < excluded.message_id returning 1`;

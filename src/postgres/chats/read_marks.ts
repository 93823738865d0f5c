/** Statements on read marks: the last message that a person has read in each chat. */
import type { Sql } from '../sql.js';

/** Read marks of a person by chat id, as the person addresses the chat. */
export async function loadReadMarks(
  sql: Sql,
  user: number,
  chats: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await sql.query<{ chat_id: number; message_id: number }>(
    'select chat_id, message_id from read_marks where user_id = $1 and chat_id = any($2)',
    [user, chats],
  );
  return new Map(rows.map(({ chat_id, message_id }) => [chat_id, message_id]));
}

/** Sets a read mark. It never moves back, because two windows of one person may report in any order. */
export async function setReadMark(sql: Sql, user: number, chat: number, message: number): Promise<void> {
  await sql.query(
    `insert into read_marks as present (user_id, chat_id, message_id) values ($1, $2, $3)
     on conflict (user_id, chat_id) do update set message_id = excluded.message_id
      where present.message_id < excluded.message_id`,
    [user, chat, message],
  );
}

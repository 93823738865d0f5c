/** Statements on chats that people have muted. */
import type { Sql } from '../sql.js';

export interface MuteRow {
  readonly chat_id: number;
  /** end of the mute, Unix time in seconds; null for a mute without end */
  readonly until: number | null;
}

/** Mutes a chat until a time (Unix, seconds), or without end if null. */
export async function putMute(sql: Sql, user: number, chat: number, until: number | null): Promise<void> {
  await sql.query(
    `insert into chat_mutes (user_id, chat_id, until) values ($1, $2, to_timestamp($3::bigint))
     on conflict (user_id, chat_id) do update set until = excluded.until`,
    [user, chat, until],
  );
}

export async function removeMute(sql: Sql, user: number, chat: number): Promise<void> {
  await sql.query('delete from chat_mutes where user_id = $1 and chat_id = $2', [user, chat]);
}

/** Mutes of these chats that are in effect now. */
export function loadMutes(sql: Sql, user: number, chats: readonly number[]): Promise<MuteRow[]> {
  return sql.query<MuteRow>(
    `select chat_id, extract(epoch from until)::bigint as until from chat_mutes
      where user_id = $1 and chat_id = any($2) and (until is null or until > now())`,
    [user, chats],
  );
}

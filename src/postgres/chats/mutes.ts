/** SQL statements for chats that people have muted. */
import { type Sql, seconds } from '../sql.js';

export interface MuteRow {
  readonly chat_id: number;
  /** The Unix time in seconds at which the mute ends. Null if the mute is permanent. */
  readonly until: number | null;
}

/** Mutes a chat until a Unix time in seconds, or permanently if the time is null. */
export const putMute = (sql: Sql, user: number, chat: number, until: number | null) => sql.run`
  insert into chat_mutes (user_id, chat_id, until) values (${user}, ${chat}, to_timestamp(${until}::bigint))
  on conflict (user_id, chat_id) do update set until = excluded.until`;

export const removeMute = (sql: Sql, user: number, chat: number) => sql.run`
  delete from chat_mutes where user_id = ${user} and chat_id = ${chat}`;

export const loadMutes = (sql: Sql, user: number, chats: readonly number[]) => sql.rows<MuteRow>`
  select chat_id, ${seconds('until')} as until from chat_mutes
  where user_id = ${user} and chat_id = any(${chats}) and (until is null or until > now())`;

/** SQL statements for the chats that a person has archived or pinned in the chat list. */
import { fail } from '../../errors.js';
import { lockPerson } from '../accounts/users.js';
import { type Database, fragment, type Sql } from '../sql.js';
import { present } from './chats.js';

export interface PlaceRow {
  readonly chat_id: number;
  /** The rank of a pinned chat; the chat with the greatest number comes first. Null if the chat is archived. */
  readonly pin: number | null;
  /** The id of the chat's newest message at the time of archiving. Null if the chat is pinned. */
  readonly archived_through: number | null;
  readonly muted: boolean;
}

const isMuted = fragment(
  `exists (select from chat_mutes m where m.user_id = p.user_id and m.chat_id = p.chat_id
    and (m.until is null or m.until > now()))`,
);

/** Loads which of the given chats are pinned or archived. If `chats` is null, loads all pinned and archived chats. */
export const loadPlaces = (sql: Sql, user: number, chats: readonly number[] | null) => sql.rows<PlaceRow>`
  select chat_id, pin, archived_through, ${isMuted} as muted from chat_places p
  where user_id = ${user} and (${chats}::bigint[] is null or chat_id = any(${chats}))`;

/**
 * Removes the rows of chats that are no longer in the person's chat list. The limit on the chat list thus also limits
 * the number of rows. Reads the chat list from Postgres, because its copy in Redis may lack a chat that the person has
 * just joined and pinned.
 */
async function dropOthers(sql: Sql, user: number): Promise<void> {
  await lockPerson(sql, user);
  await sql.run`
    delete from chat_places p where user_id = ${user}
      and not exists (select from direct_chats d where d.bot_id = p.chat_id and d.user_id = p.user_id)
      and not exists (select from chat_members m
        where m.chat_id = p.chat_id and m.member_id = p.user_id and ${fragment(present)})`;
}

/**
 * Pins a chat above the other pinned chats. A chat that is already pinned keeps its rank. Error:
 * `too_many_pinned_chats` if the person has already pinned `max` chats.
 */
export const pinInList = (db: Database, user: number, chat: number, max: number): Promise<void> =>
  db.transaction(async (sql) => {
    await dropOthers(sql, user);
    const pinned = await sql.rows<{ chat_id: number; pin: number }>`
      select chat_id, pin from chat_places where user_id = ${user} and pin is not null`;
    if (pinned.some(({ chat_id }) => chat_id === chat)) return;
    if (pinned.length >= max) fail('too_many_pinned_chats');
    const pin = Math.max(0, ...pinned.map((row) => row.pin)) + 1;
    await sql.run`
      insert into chat_places (user_id, chat_id, pin) values (${user}, ${chat}, ${pin})
      on conflict (user_id, chat_id) do update set pin = excluded.pin, archived_through = null`;
  });

/**
 * Archives a chat and unpins it. A message newer than `newest` takes the chat out of the archive, unless the chat is
 * muted.
 */
export const putInArchive = (db: Database, user: number, chat: number, newest: number): Promise<void> =>
  db.transaction(async (sql) => {
    await dropOthers(sql, user);
    await sql.run`
      insert into chat_places (user_id, chat_id, archived_through) values (${user}, ${chat}, ${newest})
      on conflict (user_id, chat_id) do update set pin = null, archived_through = excluded.archived_through`;
  });

export const unpinInList = (sql: Sql, user: number, chat: number) => sql.run`
  delete from chat_places where user_id = ${user} and chat_id = ${chat} and pin is not null`;

export const takeFromArchive = (sql: Sql, user: number, chat: number) => sql.run`
  delete from chat_places where user_id = ${user} and chat_id = ${chat} and archived_through is not null`;

/**
 * Call this before a chat is muted or unmuted, so that the change does not move the chat into or out of the archive. A
 * message newer than `archived_through` takes a chat out of the archive only while the chat is not muted. `newest` is
 * the chat's newest message.
 */
export const settleArchive = (sql: Sql, user: number, chat: number, newest: number) => sql.run`
  with passed as (
    select user_id, chat_id, ${isMuted} as muted from chat_places p
    where user_id = ${user} and chat_id = ${chat} and archived_through < ${newest}::bigint),
  kept as (
    update chat_places p set archived_through = ${newest} from passed
    where passed.muted and p.user_id = passed.user_id and p.chat_id = passed.chat_id)
  delete from chat_places p using passed
  where not passed.muted and p.user_id = passed.user_id and p.chat_id = passed.chat_id`;

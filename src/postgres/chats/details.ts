/** SQL statements for the title, description and photo of groups and channels. */
import { type ErrorName, fail } from '../../errors.js';
import { isPermitted } from '../../rules/permissions.js';
import type { StoredPicture } from '../bots/pictures.js';
import { type Database, noteStale, type Sql } from '../sql.js';
import { loadStanding, noteService, type Who } from './events.js';

export interface DetailsRow {
  readonly description: string;
  readonly photo: readonly StoredPicture[] | null;
  /** The permissions that differ from the defaults, separated by commas. */
  readonly permissions: string;
  /** The codes of the primary invite links, keyed by the id of the administrator who created the link. */
  readonly links: Readonly<Record<string, string>>;
  readonly version: number;
}

interface ChatInfo extends Omit<DetailsRow, 'links'> {
  readonly title: string;
}

export async function loadDetails(sql: Sql, chat: number): Promise<DetailsRow | null> {
  const [row] = await sql.query<DetailsRow>(
    `select description, photo, permissions, version,
            coalesce((select jsonb_object_agg(creator_id, code) from invite_links
                       where chat_id = $1 and is_primary and revoked_at is null), '{}') as links
       from chats where id = $1`,
    [chat],
  );
  return row ?? null;
}

/**
 * Runs `change` under the chat's lock if `by` may change the chat's information. If `change` returns false, the chat
 * stays unchanged. Errors: `chat_not_found`, and `refusal` if `by` lacks the right.
 */
function changeInfo(
  db: Database,
  chat: number,
  by: Who,
  refusal: ErrorName,
  change: (sql: Sql, info: ChatInfo) => Promise<boolean>,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    const [info] = await sql.query<ChatInfo>(
      "select title, description, photo, permissions, version from chats where id = $1 and type <> 'person' for update",
      [chat],
    );
    if (!info) return fail('chat_not_found');
    const own = await loadStanding(sql, chat, by.id);
    if (!own || !isPermitted(own, info.permissions, 'can_change_info')) fail(refusal);
    if (!(await change(sql, info))) return false;
    await sql.query("update chats set version = nextval('control_versions') where id = $1", [chat]);
    await noteStale(sql, [
      ['chat', chat],
      ['details', chat],
    ]);
    return true;
  });
}

/** Sets the title. Returns false if the chat already has this title. Errors: `chat_not_found`, `title_not_allowed`. */
export const setTitle = (db: Database, chat: number, by: Who, title: string): Promise<boolean> =>
  changeInfo(db, chat, by, 'title_not_allowed', async (sql, info) => {
    if (info.title === title) return false;
    await sql.query('update chats set title = $2 where id = $1', [chat, title]);
    await noteService(sql, chat, by, { new_chat_title: title });
    return true;
  });

/** Sets the description. Errors: `chat_not_found`, `about_not_allowed`, `about_not_modified`. */
export const setDescription = (db: Database, chat: number, by: Who, description: string): Promise<boolean> =>
  changeInfo(db, chat, by, 'about_not_allowed', async (sql, info) => {
    if (info.description === description) fail('about_not_modified');
    await sql.query('update chats set description = $2 where id = $1', [chat, description]);
    return true;
  });

/**
 * Sets the photo, or removes it if the given photo is null. `shown` is the photo in the service message. Errors:
 * `chat_not_found`, `photo_not_allowed`, `chat_not_modified` if there is no photo to remove.
 */
export const setPhoto = (
  db: Database,
  chat: number,
  by: Who,
  photo: readonly StoredPicture[] | null,
  shown: readonly object[],
): Promise<boolean> =>
  changeInfo(db, chat, by, 'photo_not_allowed', async (sql, info) => {
    if (photo === null && info.photo === null) fail('chat_not_modified');
    await sql.query('update chats set photo = $2 where id = $1', [chat, photo && JSON.stringify(photo)]);
    await noteService(sql, chat, by, photo ? { new_chat_photo: shown } : { delete_chat_photo: true });
    return true;
  });

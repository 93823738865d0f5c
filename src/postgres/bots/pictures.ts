/** SQL statements for the pictures of bots, and for stored files that no record uses. */

import { type Database, noteStale, type Sql } from '../sql.js';
import { noteAudit } from './audit.js';

export interface StoredPicture {
  readonly key: string;
  readonly size: number;
  /** The width in pixels. The height is the same, because the picture is square. */
  readonly width: number;
  readonly height: number;
}

/** Pictures by kind. Each picture lists all its sizes, largest first. A kind without a picture is absent. */
export interface BotPictures {
  readonly avatar?: readonly StoredPicture[];
  readonly start_picture?: readonly StoredPicture[];
}

/** The new picture (`present`) and the picture that it replaced (`former`). */
export interface PictureChange {
  readonly present: readonly StoredPicture[] | null;
  readonly former: readonly StoredPicture[] | null;
}

export const keysOf = (sizes: readonly StoredPicture[] | null): string[] =>
  (sizes ?? []).map(({ key }) => key);

/**
 * Sets or removes a picture of a bot. Marks the new files as used and the former files as unused. Returns null if
 * `owner` does not own the bot now.
 */
export function setPicture(
  db: Database,
  id: number,
  owner: number,
  kind: keyof BotPictures,
  picture: readonly StoredPicture[] | null,
): Promise<PictureChange | null> {
  return db.transaction(async (sql) => {
    const pictures = await sql.firstValue<BotPictures>`
      select pictures from bots where id = ${id} and owner_id = ${owner} for update`;
    if (!pictures) return null;
    const former = pictures[kind] ?? null;
    await sql.run`
      update bots set pictures = jsonb_strip_nulls(jsonb_set(pictures, array[${kind}::text],
        ${JSON.stringify(picture)}::jsonb)), descriptions_version = nextval('control_versions')
      where id = ${id}`;
    await forgetUnused(sql, keysOf(picture));
    await noteUnused(sql, keysOf(former));
    await noteAudit(sql, id, { type: 'user', id: owner }, 'picture_changed', { picture: kind });
    await noteStale(sql, [['descriptions', id]]);
    return { present: picture, former };
  });
}

export async function releasePictures(sql: Sql, bots: readonly number[]): Promise<void> {
  const keys = await sql.column<string>`
    select size->>'key' from bots, jsonb_path_query(pictures, '$.*[*]') size
    where id = any(${bots}::bigint[])`;
  await sql.run`update bots set pictures = '{}' where id = any(${bots}::bigint[])`;
  await noteUnused(sql, keys);
}

/** Records that files are unused. Call this before a file is written, and when nothing uses a file any more. */
export async function noteUnused(sql: Sql, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  await sql.run`insert into unused_files (key) select unnest(${keys}::text[]) on conflict do nothing`;
}

/** Removes the records of unused files, after the files were deleted. */
export const forgetUnused = (sql: Sql, keys: readonly string[]) => sql.run`
  delete from unused_files where key = any(${keys}::text[])`;

/**
 * Takes at most `limit` files that have been unused for `ageMs`. Skips rows that another process is working on.
 * `remove` deletes a file and returns whether it did. Removes the records of the deleted files, and returns how many.
 */
export function takeUnused(
  db: Database,
  ageMs: number,
  limit: number,
  remove: (key: string) => Promise<boolean>,
): Promise<number> {
  return db.transaction(async (sql) => {
    const keys = await sql.column<string>`
      select key from unused_files where since < now() - ${ageMs} * interval '1 millisecond'
      order by since limit ${limit} for update skip locked`;
    const gone: string[] = [];
    for (const key of keys) if (await remove(key)) gone.push(key);
    await forgetUnused(sql, gone);
    return gone.length;
  });
}

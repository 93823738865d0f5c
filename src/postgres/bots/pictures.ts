/** Statements on pictures of bots, and on stored files that no record refers to. */

import { type Database, noteStale, type Sql } from '../sql.js';
import { noteAudit } from './audit.js';

/** One size of a picture. */
export interface StoredPicture {
  /** key in the blob store */
  readonly key: string;
  /** size in bytes */
  readonly size: number;
  /** width and height in pixels */
  readonly width: number;
  readonly height: number;
}

/** Pictures by kind, each in its sizes, the largest first; a kind without picture is absent. */
export interface BotPictures {
  readonly avatar?: readonly StoredPicture[];
  readonly start_picture?: readonly StoredPicture[];
}

/** The picture that was set, and the one that it replaced. */
export interface PictureChange {
  readonly present: readonly StoredPicture[] | null;
  readonly former: readonly StoredPicture[] | null;
}

/**
 * Sets or removes a picture of a bot if `owner` owns it now; returns null otherwise. Marks the new files as used and
 * the former ones as unused.
 */
export function setPicture(
  db: Database,
  id: number,
  owner: number,
  kind: keyof BotPictures,
  picture: readonly StoredPicture[] | null,
): Promise<PictureChange | null> {
  return db.transaction(async (sql) => {
    const [row] = await sql.query<{ pictures: BotPictures }>(
      'select pictures from bots where id = $1 and owner_id = $2 for update',
      [id, owner],
    );
    if (!row) return null;
    const former = row.pictures[kind] ?? null;
    await sql.query(
      `update bots set pictures = jsonb_strip_nulls(jsonb_set(pictures, array[$2::text], $3::jsonb)),
              descriptions_version = nextval('control_versions')
        where id = $1`,
      [id, kind, JSON.stringify(picture)],
    );
    await sql.query('delete from unused_files where key = any($1::text[])', [
      (picture ?? []).map(({ key }) => key),
    ]);
    await noteUnused(
      sql,
      (former ?? []).map(({ key }) => key),
    );
    await noteAudit(sql, id, { type: 'user', id: owner }, 'picture_changed', { picture: kind });
    await noteStale(sql, [['descriptions', id]]);
    return { present: picture, former };
  });
}

/** Removes all pictures of bots that are deleted, and marks their files as unused. */
export async function releasePictures(sql: Sql, bots: readonly number[]): Promise<void> {
  const found = await sql.query<{ key: string }>(
    `select size->>'key' as key from bots, jsonb_path_query(pictures, '$.*[*]') size where id = any($1::bigint[])`,
    [bots],
  );
  await sql.query("update bots set pictures = '{}' where id = any($1::bigint[])", [bots]);
  await noteUnused(
    sql,
    found.map(({ key }) => key),
  );
}

/** Records stored files that no record refers to: before they are written, or when the last reference is removed. */
export async function noteUnused(sql: Sql, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  await sql.query('insert into unused_files (key) select unnest($1::text[]) on conflict do nothing', [keys]);
}

/** Removes entries of unused files after the files were deleted. */
export async function forgetUnused(sql: Sql, keys: readonly string[]): Promise<void> {
  await sql.query('delete from unused_files where key = any($1::text[])', [keys]);
}

/**
 * Takes files that have been unused for `ageMs`, at most `limit`, and removes the entries of those that `remove`
 * reports as deleted. Skips rows that another process is working on. Returns how many entries were removed.
 */
export function takeUnused(
  db: Database,
  ageMs: number,
  limit: number,
  remove: (key: string) => Promise<boolean>,
): Promise<number> {
  return db.transaction(async (sql) => {
    const rows = await sql.query<{ key: string }>(
      `select key from unused_files where since < now() - $1 * interval '1 millisecond'
        order by since limit $2 for update skip locked`,
      [ageMs, limit],
    );
    const gone: string[] = [];
    for (const { key } of rows) if (await remove(key)) gone.push(key);
    await forgetUnused(sql, gone);
    return gone.length;
  });
}

/** Statements on the pictures of bots, and on stored files that nothing refers to. */

import { type Database, noteStale, type Sql } from '../sql.js';
import { noteAudit } from './audit.js';

/** One size of a picture. */
export interface StoredPicture {
  /** of the blob store */
  readonly key: string;
  /** in bytes */
  readonly size: number;
  /** in pixels */
  readonly width: number;
  readonly height: number;
}

/** By kind, in their sizes, the largest first; a kind that the bot has not is absent. */
export interface BotPictures {
  readonly avatar?: readonly StoredPicture[];
  readonly start_picture?: readonly StoredPicture[];
}

/** What was set, and what stood in its place before. */
export interface PictureChange {
  readonly present: readonly StoredPicture[] | null;
  readonly former: readonly StoredPicture[] | null;
}

/**
 * Sets or removes a picture of a bot, if `owner` owns it now; null when not. The files that are set are no longer unused,
 * and those that stood there are.
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

/** Takes all pictures from bots that are deleted: their files are unused. */
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

/** Names stored files that nothing refers to: before they are written, or where the last reference goes. */
export async function noteUnused(sql: Sql, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  await sql.query('insert into unused_files (key) select unnest($1::text[]) on conflict do nothing', [keys]);
}

/** Strikes files off that have been removed. */
export async function forgetUnused(sql: Sql, keys: readonly string[]): Promise<void> {
  await sql.query('delete from unused_files where key = any($1::text[])', [keys]);
}

/**
 * Hands out files that nothing has referred to for `ageMs`, at most `limit`, and strikes off those that `remove` says are
 * gone. Rows that another process has in hand are passed over. Returns how many were struck off.
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

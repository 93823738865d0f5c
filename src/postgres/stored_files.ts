/** Statements on stored uploads and the bytes that they use per owner. */
import { type Database, one, type Sql } from './sql.js';

/**
 * Records a file if its owner's files stay within `max` bytes. Returns false, and records nothing, if they would
 * exceed it.
 */
export async function noteStored(
  sql: Sql,
  owner: number,
  key: string,
  bytes: number,
  max: number,
): Promise<boolean> {
  const rows = await sql.query(
    `with total as (
       insert into stored_totals as t (owner_id, bytes) select $1::bigint, $3::bigint where $3::bigint <= $4::bigint
       on conflict (owner_id) do update set bytes = t.bytes + excluded.bytes where t.bytes + excluded.bytes <= $4::bigint
       returning 1)
     insert into stored_files (key, owner_id, bytes) select $2, $1::bigint, $3::bigint from total returning 1`,
    [owner, key, bytes, max],
  );
  return rows.length > 0;
}

/** Removes the records of files that are no longer stored. Returns how many of these had a record. */
export async function forgetStored(sql: Sql, keys: readonly string[]): Promise<number> {
  const { count } = await one<{ count: number }>(
    sql,
    `with gone as (delete from stored_files where key = any($1::text[]) returning owner_id, bytes),
          freed as (
            update stored_totals t set bytes = t.bytes - g.bytes
              from (select owner_id, sum(bytes)::bigint as bytes from gone group by owner_id order by owner_id) g
             where t.owner_id = g.owner_id)
     select count(*) as count from gone`,
    [keys],
  );
  return count;
}

/** Total bytes of an owner's stored files. */
export async function loadStored(sql: Sql, owner: number): Promise<number> {
  const [row] = await sql.query<{ bytes: number }>('select bytes from stored_totals where owner_id = $1', [
    owner,
  ]);
  return row?.bytes ?? 0;
}

/** Up to `limit` files that were recorded at least `ageMs` ago, the oldest first. */
export async function loadStoredBefore(db: Database, ageMs: number, limit: number): Promise<string[]> {
  const rows = await db.query<{ key: string }>(
    `select key from stored_files where created_at <= now() - $1::bigint * interval '1 millisecond'
      order by created_at limit $2`,
    [ageMs, limit],
  );
  return rows.map(({ key }) => key);
}

/** SQL statements for stored uploads, and for how much storage each owner uses. */
import type { Sql } from './sql.js';

/** Records a file. If the owner's files would then exceed `max` bytes in total, records nothing and returns false. */
export const noteStored = (sql: Sql, owner: number, key: string, bytes: number, max: number) => sql.some`
  with total as (
    insert into stored_totals as t (owner_id, bytes) select ${owner}::bigint, ${bytes}::bigint
    where ${bytes}::bigint <= ${max}::bigint
    on conflict (owner_id) do update set bytes = t.bytes + excluded.bytes
    where t.bytes + excluded.bytes <= ${max}::bigint
    returning 1)
  insert into stored_files (key, owner_id, bytes) select ${key}, ${owner}::bigint, ${bytes}::bigint
  from total returning 1`;

export const forgetStored = (sql: Sql, keys: readonly string[]) => sql.value<number>`
  with gone as (delete from stored_files where key = any(${keys}::text[]) returning owner_id, bytes),
       freed as (
         update stored_totals t set bytes = t.bytes - g.bytes
           from (select owner_id, sum(bytes)::bigint as bytes from gone group by owner_id order by owner_id) g
          where t.owner_id = g.owner_id)
  select count(*) as count from gone`;

export const isStoredBy = (sql: Sql, owner: number, key: string) => sql.some`
  select from stored_files where key = ${key} and owner_id = ${owner}`;

export const loadStored = async (sql: Sql, owner: number) =>
  (await sql.firstValue<number>`select bytes from stored_totals where owner_id = ${owner}`) ?? 0;

/** Returns the total of stored bytes, and the owner with the most stored bytes. Returns null if no file is stored. */
export const loadStoredOverall = (sql: Sql) =>
  sql.first<{ readonly bytes: number; readonly owner: number; readonly ownBytes: number }>`
    select (sum(bytes) over ())::bigint as bytes, owner_id as owner, bytes as "ownBytes" from stored_totals
    where bytes > 0 order by stored_totals.bytes desc limit 1`;

/**
 * Returns the sorted keys of files that were recorded at least `ageMs` ago but never written. `written` lists the keys
 * of the files that were written. Returns only keys above `after` and up to `end`. If `end` is null, there is no upper
 * limit.
 */
export const loadUnwritten = (
  sql: Sql,
  ageMs: number,
  { after, end }: { readonly after: string; readonly end: string | null },
  written: readonly string[],
  limit: number,
) => sql.column<string>`
  select key from stored_files
  where key > ${after} and (${end}::text is null or key <= ${end}::text)
    and created_at <= now() - ${ageMs}::bigint * interval '1 millisecond' and key <> all(${written}::text[])
  order by key limit ${limit}`;

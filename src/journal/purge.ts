/** Removes tombstones that no batch can meet any more, and what is kept of deliveries past its bounds. */
import { limits } from '../limits.js';
import { type Pool, statement } from '../postgres/pool.js';
import { journalTables } from './tables.js';

const chunkRowsMax = 1_000;
/** Of one table in one purge; what remains waits for the next. */
const chunksMax = 50;

/** One purge a minute in the whole installation, and both times are the database's. */
const claimPurge = statement(
  'claim_purge',
  `insert into installation (name, value) values ('tombstones_purged_at', now()::text)
   on conflict (name) do update set value = excluded.value
   where installation.value::timestamptz <= now() - interval '1 minute'
   returning name`,
);

const deletions = journalTables.map(({ table }) =>
  statement(
    `purge_${table}`,
    `delete from ${table} where ctid = any(array(
       select ctid from ${table}
       where deleted_at < now() - $1::bigint * interval '1 millisecond'
       order by deleted_at limit ${chunkRowsMax} for update skip locked
     ))`,
  ),
);

/** A dead letter that nobody asked for leaves a tombstone too: an older batch may be written again. */
const expireDead = statement(
  'expire_dead_updates',
  `update dead_updates set record = null, deleted_at = now() where ctid = any(array(
     select ctid from dead_updates
     where created_at < now() - $1::bigint * interval '1 millisecond' and record is not null
     order by created_at limit ${chunkRowsMax} for update skip locked
   ))`,
);
const agedAttempts = statement(
  'purge_aged_attempts',
  `delete from delivery_attempts where ctid = any(array(
     select ctid from delivery_attempts where at < now() - $1::bigint * interval '1 millisecond'
     order by at limit ${chunkRowsMax} for update skip locked
   ))`,
);
const surplusAttempts = statement(
  'purge_surplus_attempts',
  `with bounds as materialized (
     select c.bot_id, (
       select a.id from delivery_attempts a where a.bot_id = c.bot_id and not a.delivered
        order by a.id desc offset $1 limit 1
     ) as last from delivery_counts c where c.failed + c.dead > $1
   ) delete from delivery_attempts a where a.ctid = any(array(
     select b.ctid from bounds join delivery_attempts b
         on b.bot_id = bounds.bot_id and b.id <= bounds.last and not b.delivered
      limit ${chunkRowsMax} for update of b skip locked
   ))`,
);

/** What is kept for a time or up to a number, and which bound that is. */
const bounded = [
  [expireDead, limits.dead_update_age_ms_max],
  [agedAttempts, limits.delivery_attempt_age_ms_max],
  [surplusAttempts, limits.delivery_failures_kept],
] as const;

/**
 * Deletes tombstones older than limits.tombstone_age_ms_max, dead letters and attempts to deliver past their bounds, if no purge ran
 * within a minute. Returns the rows.
 */
export async function purgeTombstones(pool: Pool): Promise<number> {
  const claimed = await pool.query(claimPurge);
  if (claimed.count === 0) return 0;
  let purged = 0;
  const tombstones = deletions.map((deletion) => [deletion, limits.tombstone_age_ms_max] as const);
  for (const [deletion, bound] of [...tombstones, ...bounded]) {
    for (let chunk = 0; chunk < chunksMax; chunk++) {
      const { count } = await pool.query(deletion, [bound]);
      purged += count;
      if (count < chunkRowsMax) break;
    }
  }
  return purged;
}

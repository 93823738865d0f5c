/** Removes tombstones that no batch can meet any more, and notes of requests whose idempotency keys have ended. */
import { limits } from '../limits.js';
import { type Pool, statement } from '../postgres/pool.js';
import { type JournalTable, journalTables } from './tables.js';

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

const old = "deleted_at < now() - $1::bigint * interval '1 millisecond'";

/** First what goes with an entity, then the entity when none of that is left: a chunk may hold less than all of it. */
const dependentDeletions = journalTables.flatMap(({ table, columns, dependents = [] }) =>
  dependents.map((dependent) =>
    statement(
      `purge_${dependent}_with_${table}`,
      `delete from ${dependent} where ctid = any(array(
         select d.ctid
         from (select ${columns.join(', ')} from ${table} where ${old} order by deleted_at limit ${chunkRowsMax}) gone
         join ${dependent} d using (${columns.join(', ')})
         limit ${chunkRowsMax} for update of d skip locked
       ))`,
    ),
  ),
);

const withoutDependents = ({ table, columns, dependents = [] }: JournalTable): string =>
  dependents
    .map((dependent) => {
      const same = columns.map((column) => `d.${column} = ${table}.${column}`).join(' and ');
      return ` and not exists (select 1 from ${dependent} d where ${same})`;
    })
    .join('');

const deletions = journalTables.map((entity) =>
  statement(
    `purge_${entity.table}`,
    `delete from ${entity.table} where ctid = any(array(
       select ctid from ${entity.table}
       where ${old}${withoutDependents(entity)}
       order by deleted_at limit ${chunkRowsMax} for update skip locked
     ))`,
  ),
);

const deleteRequests = statement(
  'purge_control_requests',
  `delete from control_requests where request = any(array(
     select request from control_requests
     where created_at < now() - $1::bigint * interval '1 millisecond'
     order by created_at limit ${chunkRowsMax} for update skip locked
   ))`,
);

/** Deletes tombstones older than limits.tombstone_age_ms_max, if no purge ran within a minute. Returns the rows. */
export async function purgeTombstones(pool: Pool): Promise<number> {
  const claimed = await pool.query(claimPurge);
  if (claimed.count === 0) return 0;
  let purged = 0;
  const ages = [...dependentDeletions, ...deletions].map(
    (deletion) => [deletion, limits.tombstone_age_ms_max] as const,
  );
  for (const [deletion, age] of [...ages, [deleteRequests, limits.idempotency_ttl_ms] as const]) {
    for (let chunk = 0; chunk < chunksMax; chunk++) {
      const { count } = await pool.query(deletion, [age]);
      purged += count;
      if (count < chunkRowsMax) break;
    }
  }
  return purged;
}

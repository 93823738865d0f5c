/**
 * Deletes data that is past its maximum age or over its limit:
 * - in every database: results stored for expired idempotency keys
 * - in each shard: tombstones that no batch can reach any more, with the rows that were part of the deleted records;
 *   dead letters, delivery attempts and quarantined entries
 * - in the control database: former tokens, sent notices, audit entries, administrators' calls, past transfer offers,
 *   names of deleted bots and people, join requests, and events of chats that could not be posted
 */

import { postgresLimits } from '../postgres/limits.js';
import { type Pool, type Statement, statement } from '../postgres/pool.js';
import { storeLimits } from '../store/limits.js';
import { journalLimits as limits } from './limits.js';
import { type JournalTable, journalTables } from './tables.js';

const chunkRowsMax = 1_000;
/** How many chunks of rows one purge deletes per table. The next purge deletes the remaining rows. */
const chunksMax = 50;

/** Allows one purge per minute in the whole installation, by the database's clock. */
const claimPurge = statement(
  'claim_purge',
  `insert into installation (name, value) values ('tombstones_purged_at', now()::text)
   on conflict (name) do update set value = excluded.value
   where installation.value::timestamptz <= now() - interval '1 minute'
   returning name`,
);

const past = "deleted_at < now() - $1::bigint * interval '1 millisecond'";
const partsOf = (whole: string) => journalTables.filter(({ partOf }) => partOf === whole);

const belongs = ({ columns }: JournalTable): string =>
  columns.map((column) => `part.${column} = whole.${column}`).join(' and ');

/**
 * False while partitions are being moved to this database. During a move, no row may be deleted here, because the row's
 * next update from the source would then be lost.
 */
const receivesNone = "not exists (select from pg_subscription_rel where srrelid = 'messages'::regclass)";

/**
 * Deletes the parts of a record before the record, because only the record's tombstone shows that its parts must be
 * deleted.
 */
const deletions = journalTables.flatMap((whole) => {
  const parts = partsOf(whole.table);
  const ofParts = parts.map(({ table }) =>
    statement(
      `purge_${table}_of_${whole.table}`,
      `delete from ${table} where ctid = any(array(
         select part.ctid from ${whole.table} whole join ${table} part on ${belongs(whole)}
         where whole.${past} and ${receivesNone}
         limit ${chunkRowsMax} for update of part skip locked
       ))`,
    ),
  );
  const none = parts.map(({ table }) => `and not exists (select from ${table} part where ${belongs(whole)})`);
  // Selects rows by key, because a ctid is unique only within one partition of a table.
  const keys = [...whole.columns, ...(whole.dated ? ['day'] : [])].join(', ');
  const ofWhole = statement(
    `purge_${whole.table}`,
    `delete from ${whole.table} where (${keys}) in (
       select ${keys} from ${whole.table} whole
       where ${past} and ${receivesNone} ${none.join(' ')}
       order by deleted_at limit ${chunkRowsMax} for update of whole skip locked
     )`,
  );
  return [...ofParts, ofWhole];
});

const aged = (name: string, table: string, key: string, column: string) =>
  statement(
    name,
    `delete from ${table} where ${key} = any(array(
       select ${key} from ${table} where ${column} < now() - $1::bigint * interval '1 millisecond'
       order by ${column} limit ${chunkRowsMax} for update skip locked
     ))`,
  );

const deleteRequests = aged('purge_control_requests', 'control_requests', 'request', 'created_at');

const deleteFormerTokens = aged('purge_former_tokens', 'former_tokens', 'hmac', 'ended_at');

const agedAttempts = aged('purge_aged_attempts', 'delivery_attempts', 'ctid', 'at');
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

/** Deletes delivered updates of days that have no partition. */
const agedKept = aged('purge_kept_updates', 'kept_updates_default', 'ctid', 'at');

/**
 * Deletes delivery failures of days that have no partition. For a bot with very many delivery failures, also deletes
 * the oldest ones. All other delivery failures disappear when the partition of their day is dropped.
 */
const agedFailures = aged('purge_aged_failures', 'delivery_failures_default', 'ctid', 'at');
const surplusFailures = statement(
  'purge_surplus_failures',
  `with bounds as materialized (
     select c.bot_id, (
       select a.id from delivery_failures a where a.bot_id = c.bot_id order by a.id desc offset $1 limit 1
     ) as last from delivery_counts c where c.failed + c.dead > $1
   ), old as materialized (
     select b.bot_id, b.id, b.at from bounds join delivery_failures b
         on b.bot_id = bounds.bot_id and b.id <= bounds.last
      limit ${chunkRowsMax} for update of b skip locked
   ) delete from delivery_failures a using old
      where a.bot_id = old.bot_id and a.id = old.id and a.at = old.at`,
);

const deleteOldDead = aged('purge_dead_updates_by_age', 'dead_updates', 'ctid', 'created_at');

const agedAdminCalls = aged('purge_aged_admin_calls', 'admin_calls', 'id', 'at');
const surplusAdminCalls = statement(
  'purge_surplus_admin_calls',
  `delete from admin_calls where id = any(array(
     select id from admin_calls
     where id <= (select id from admin_calls order by id desc offset $1::bigint limit 1)
     order by id limit ${chunkRowsMax} for update skip locked
   ))`,
);

const agedAudit = aged('purge_aged_audit', 'bot_audit', 'id', 'at');
const surplusAudit = statement(
  'purge_surplus_audit',
  `with full_bots as materialized (
     select bot_id, (select id from bot_audit kept where kept.bot_id = counted.bot_id
                     order by id desc offset $1::bigint limit 1) as last
     from (select bot_id from bot_audit group by bot_id having count(*) > $1::bigint) counted)
   delete from bot_audit where id = any(array(
     select old.id from bot_audit old join full_bots on old.bot_id = full_bots.bot_id
     where old.id <= full_bots.last limit ${chunkRowsMax} for update of old skip locked
   ))`,
);
const pastOffers = statement(
  'purge_past_offers',
  `delete from bot_transfers where bot_id = any(array(
     select bot_id from bot_transfers where expires_at < now() - $1::bigint * interval '1 millisecond'
     limit ${chunkRowsMax} for update skip locked
   ))`,
);

/**
 * Reserves the deletion of surplus dead letters for this purge. The reservation succeeds at most once per hour, because
 * the deletion counts the dead letters of all bots and is expensive.
 */
const claimBound = statement(
  'claim_dead_updates_bound',
  `insert into installation (name, value) values ('dead_updates_bounded_at', now()::text)
   on conflict (name) do update set value = excluded.value
   where installation.value::timestamptz <= now() - interval '1 hour'
   returning name`,
);

const deleteSurplusDead = statement(
  'purge_dead_updates_by_count',
  `with full_bots as materialized (
     select bot_id, (select update_id from dead_updates kept where kept.bot_id = counted.bot_id
                     order by update_id desc offset $1::bigint limit 1) as last
     from (select bot_id from dead_updates group by bot_id having count(*) > $1::bigint) counted)
   delete from dead_updates where ctid = any(array(
     select dead.ctid from dead_updates dead join full_bots on dead.bot_id = full_bots.bot_id
     where dead.update_id <= full_bots.last limit ${chunkRowsMax} for update of dead skip locked
   ))`,
);

/**
 * Replaces the oldest polls with tombstones. `$1` is the maximum age in ms. A poll's number contains the Unix time of
 * its creation in ms.
 */
const agedPolls = statement(
  'purge_aged_polls',
  `update polls set record = null, deleted_at = now() where (partition, number) in (
     select partition, number from polls
     where record is not null and number < extract(epoch from now()) * 1000 - $1::bigint and ${receivesNone}
     limit ${chunkRowsMax} for update skip locked
   )`,
);

/**
 * Deletes results and votes that were written after their poll was purged. This happens because Redis keeps a poll of
 * any age while people vote in it.
 */
const lateParts = journalTables
  .filter(({ table }) => table === 'polls')
  .flatMap((whole) =>
    partsOf(whole.table).map(({ table }) =>
      statement(
        `purge_late_${table}`,
        `delete from ${table} where ctid = any(array(
           select part.ctid from ${table} part
           where part.number < extract(epoch from now()) * 1000 - $1::bigint and ${receivesNone}
             and not exists (select from ${whole.table} whole where ${belongs(whole)})
           limit ${chunkRowsMax} for update of part skip locked
         ))`,
      ),
    ),
  );

/** Deletes quarantined entries at the same age as messages, because quarantined entries may contain messages. */
const agedQuarantine = aged('purge_aged_quarantine', 'quarantine', 'ctid', 'created_at');

const freeNames = aged('purge_free_names', 'names', 'name', 'free_at');

const agedJoinRequests = aged('purge_join_requests', 'join_requests', 'ctid', 'created_at');

const agedMemberEvents = aged('purge_member_events', 'member_events', 'id', 'created_at');

const deleteSentNotices = aged('purge_notices', 'notices', 'id', 'told_at');

const messageAgeMs = (messageDays: number | undefined) =>
  (messageDays ?? Number.POSITIVE_INFINITY) * 86_400_000;

export const attemptAgeMs = (messageDays: number | undefined): number =>
  Math.min(limits.delivery_attempt_age_ms_max, messageAgeMs(messageDays));

/**
 * Returns how long delivered updates are kept, in ms. Updates contain messages, so they are never kept longer than
 * messages.
 */
export const keptAgeMs = (updatesDays: number, messageDays: number | undefined): number =>
  Math.min(updatesDays * 86_400_000, messageAgeMs(messageDays));

export interface Holds {
  readonly control: boolean;
  readonly sharded: boolean;
}

function dueIn(
  { control, sharded }: Holds,
  bounded: boolean,
  auditDays: number,
  messageDays: number | undefined,
  updatesDays: number,
): ReadonlyArray<readonly [Statement, number]> {
  const messageAge = messageAgeMs(messageDays);
  const ofShards: ReadonlyArray<readonly [Statement, number]> = [
    ...deletions.map((deletion) => [deletion, limits.tombstone_age_ms_max] as const),
    [deleteOldDead, Math.min(limits.dead_update_age_ms_max, messageAge)],
    [agedAttempts, attemptAgeMs(messageDays)],
    [surplusAttempts, limits.delivery_failures_kept],
    [agedFailures, attemptAgeMs(messageDays)],
    [agedKept, keptAgeMs(updatesDays, messageDays)],
    [surplusFailures, limits.delivery_failures_kept],
    ...(messageDays === undefined
      ? []
      : [[agedQuarantine, messageAge] as const, [agedPolls, messageAge] as const]),
    ...(bounded ? [[deleteSurplusDead, limits.dead_updates_per_bot_max] as const] : []),
    ...(bounded && messageDays !== undefined ? lateParts.map((late) => [late, messageAge] as const) : []),
  ];
  const ofControl: ReadonlyArray<readonly [Statement, number]> = [
    [deleteFormerTokens, storeLimits.former_token_age_ms_max],
    [deleteSentNotices, limits.notice_kept_ms],
    [agedAudit, auditDays * 86_400_000],
    [agedAdminCalls, auditDays * 86_400_000],
    [surplusAdminCalls, limits.admin_calls_kept],
    [pastOffers, 0],
    [freeNames, 0],
    [agedJoinRequests, postgresLimits.join_request_age_ms_max],
    [agedMemberEvents, Math.min(limits.member_event_age_ms_max, messageAge)],
    ...(bounded ? [[surplusAudit, storeLimits.audit_events_per_bot_max] as const] : []),
  ];
  return [
    [deleteRequests, storeLimits.idempotency_ttl_ms],
    ...(sharded ? ofShards : []),
    ...(control ? ofControl : []),
  ];
}

/**
 * Deletes the data of one database that are past their maximum age. Tombstones are deleted after
 * limits.tombstone_age_ms_max, together with the remaining rows of the deleted records. Does nothing if the database
 * was purged within the last minute. `auditDays` is AUDIT_DAYS. `messageDays` is MESSAGE_DAYS and limits the age of
 * messages and of their copies. `updatesDays` is UPDATES_DAYS. Returns the number of deleted rows.
 */
export async function purgeTombstones(
  pool: Pool,
  auditDays = 365,
  messageDays: number | undefined = undefined,
  holds: Holds = { control: true, sharded: true },
  updatesDays = 0,
): Promise<number> {
  const claimed = await pool.query(claimPurge);
  if (claimed.count === 0) return 0;
  let purged = 0;
  const bounded = (await pool.query(claimBound)).count > 0;
  for (const [deletion, bound] of dueIn(holds, bounded, auditDays, messageDays, updatesDays)) {
    for (let chunk = 0; chunk < chunksMax; chunk++) {
      const { count } = await pool.query(deletion, [bound]);
      purged += count;
      if (count < chunkRowsMax) break;
    }
  }
  return purged;
}

/**
 * SQL statements for the audit log of bots. An event is written in the same transaction as the change that it
 * describes.
 */
import { type Sql, seconds } from '../sql.js';

export const auditEvents = [
  'created',
  'token_shown',
  'token_issued',
  'texts_changed',
  'write_access_changed',
  'inline_mode_changed',
  'transfer_offered',
  'transfer_withdrawn',
  'transfer_declined',
  'transferred',
  'webhook_set',
  'webhook_deleted',
  'webhook_route_set',
  'webhook_route_deleted',
  'signing_secret_rotated',
  'leak_found',
  'picture_changed',
  'suspended',
  'unsuspended',
  'updates_replayed',
  'deleted',
] as const;
export type AuditEvent = (typeof auditEvents)[number];

/** Who made a change. `bot` means that the bot made the change through the bot interface. */
export type AuditActor =
  | { readonly type: 'user'; readonly id: number }
  | { readonly type: 'bot' | 'operator' | 'service' };

export interface AuditRow {
  readonly id: number;
  readonly actor_type: AuditActor['type'];
  readonly actor_id: number | null;
  readonly event: AuditEvent;
  readonly details: Readonly<Record<string, unknown>>;
  /** The Unix time in seconds at which the event happened. */
  readonly at: number;
}

/**
 * Logs an action of `actor` on a bot. `sql` must be the transaction of the change, so that exactly the committed
 * changes are logged. `details` are shown to the owner unchanged, so they must contain no token, secret or URL. Returns
 * the id of the log entry.
 */
export async function noteAudit(
  sql: Sql,
  bot: number,
  actor: AuditActor,
  event: AuditEvent,
  details: Readonly<Record<string, unknown>> = {},
): Promise<number> {
  const id = actor.type === 'user' ? actor.id : null;
  return sql.value<number>`
    insert into bot_audit (bot_id, actor_type, actor_id, event, details)
    values (${bot}, ${actor.type}, ${id}, ${event}, ${JSON.stringify(details)}) returning id`;
}

/** The audit entry for the updates that one call by an operator replays. */
export interface ReplayNote {
  readonly actor: AuditActor;
  /** The id of the entry that an earlier step of the same call created. Null if this is the first step. */
  readonly event: number | null;
}

/** Logs replayed updates. Each call has one entry, whose count grows with each step. Returns the id of the entry. */
export async function noteReplay(
  sql: Sql,
  bot: number,
  { actor, event }: ReplayNote,
  updateIds: readonly number[],
): Promise<number> {
  const [first, last] = [updateIds[0], updateIds.at(-1)];
  if (event !== null) {
    await sql.run`
      update bot_audit set details = details || jsonb_build_object(
        'queued', (details->>'queued')::bigint + ${updateIds.length}::bigint, 'to_update_id', ${last}::bigint)
      where id = ${event}`;
    return event;
  }
  const details = { queued: updateIds.length, from_update_id: first, to_update_id: last };
  return noteAudit(sql, bot, actor, 'updates_replayed', details);
}

/** Loads entries with ids below `before`, newest first. Omits entries from before the current owner got the bot. */
export const loadAudit = (sql: Sql, bot: number, before: number, limit: number) => sql.rows<AuditRow>`
  select a.id, a.actor_type, a.actor_id, a.event, a.details, ${seconds('a.at')} as at
   from bot_audit a join bots b on b.id = a.bot_id
  where a.bot_id = ${bot} and a.id < ${before} and a.at >= b.owned_since order by a.id desc limit ${limit}`;

/** Statements on the audit log of bots. An event is written in the transaction of the change that it describes. */
import { one, type Sql } from '../sql.js';

/** Names of audit events, as the API returns them. */
export const auditEvents = [
  'created',
  'token_shown',
  'token_issued',
  'texts_changed',
  'write_access_changed',
  'transfer_offered',
  'transfer_withdrawn',
  'transfer_declined',
  'transferred',
  'webhook_set',
  'webhook_deleted',
  'signing_secret_rotated',
  'leak_found',
  'picture_changed',
  'suspended',
  'unsuspended',
  'updates_replayed',
  'deleted',
] as const;
export type AuditEvent = (typeof auditEvents)[number];

/** Who made a change: a person (by id), the bot through the bot interface, an operator, or the service itself. */
export type AuditActor =
  | { readonly type: 'user'; readonly id: number }
  | { readonly type: 'bot' | 'operator' | 'service' };

export interface AuditRow {
  readonly id: number;
  readonly actor_type: AuditActor['type'];
  /** id of the person who made the change; null for other actors */
  readonly actor_id: number | null;
  readonly event: AuditEvent;
  readonly details: Readonly<Record<string, unknown>>;
  /** when the event happened, Unix time in s */
  readonly at: number;
}

/**
 * Logs an action of `actor` on a bot. `sql` is the transaction of the change, so that every change is logged and only
 * changes that were made are. `details` are shown to the owner unchanged: they must contain no token, secret or URL.
 */
export async function noteAudit(
  sql: Sql,
  bot: number,
  actor: AuditActor,
  event: AuditEvent,
  details: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const id = actor.type === 'user' ? actor.id : null;
  await sql.query(
    'insert into bot_audit (bot_id, actor_type, actor_id, event, details) values ($1, $2, $3, $4, $5)',
    [bot, actor.type, id, event, JSON.stringify(details)],
  );
}

/** The audit entry for updates that an operator delivers again in one call. */
export interface ReplayNote {
  readonly actor: AuditActor;
  /** Id of the entry that covers earlier steps of the same call; null for the first step. */
  readonly event: number | null;
}

/**
 * Logs updates that are delivered again: one entry per call, whose count grows with each step. Returns the entry's
 * id.
 */
export async function noteReplay(
  sql: Sql,
  bot: number,
  { actor, event }: ReplayNote,
  updateIds: readonly number[],
): Promise<number> {
  const [first, last] = [updateIds[0], updateIds.at(-1)];
  if (event !== null) {
    await sql.query(
      `update bot_audit set details = details || jsonb_build_object(
         'queued', (details->>'queued')::bigint + $2::bigint, 'to_update_id', $3::bigint) where id = $1`,
      [event, updateIds.length, last],
    );
    return event;
  }
  const details = { queued: updateIds.length, from_update_id: first, to_update_id: last };
  const { id } = await one<{ id: number }>(
    sql,
    `insert into bot_audit (bot_id, actor_type, actor_id, event, details)
     values ($1, $2, $3, 'updates_replayed', $4) returning id`,
    [bot, actor.type, actor.type === 'user' ? actor.id : null, JSON.stringify(details)],
  );
  return id;
}

/** Audit entries of a bot since its current owner got it, with ids below `before`, newest first. */
export function loadAudit(sql: Sql, bot: number, before: number, limit: number): Promise<AuditRow[]> {
  return sql.query<AuditRow>(
    `select a.id, a.actor_type, a.actor_id, a.event, a.details, extract(epoch from a.at)::bigint as at
       from bot_audit a join bots b on b.id = a.bot_id
      where a.bot_id = $1 and a.id < $2 and a.at >= b.owned_since order by a.id desc limit $3`,
    [bot, before, limit],
  );
}

/** Statements on the audit log of bots. An event is written in the transaction that makes the change. */
import { one, type Sql } from '../sql.js';

/** What is told of. The names are on the wire. */
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

/** Who did it: a person by id, the bot itself through the bot interface, an operator, or the service by itself. */
export type AuditActor =
  | { readonly type: 'user'; readonly id: number }
  | { readonly type: 'bot' | 'operator' | 'service' };

export interface AuditRow {
  readonly id: number;
  readonly actor_type: AuditActor['type'];
  /** of a person */
  readonly actor_id: number | null;
  readonly event: AuditEvent;
  readonly details: Readonly<Record<string, unknown>>;
  /** s */
  readonly at: number;
}

/**
 * Notes what `actor` did with a bot; `sql` is the transaction of the change, so that no change goes unnoted and nothing is noted
 * that was not done. `details` are shown to the owner as they stand: no token, no secret, no URL.
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

/** Updates that an operator has delivered again, in one call. */
export interface ReplayNote {
  readonly actor: AuditActor;
  /** Of the event that tells of what was taken before by the same call; null for none. */
  readonly event: number | null;
}

/** Notes updates that are delivered again: one event a call, which grows with each step of it. Returns the event's id. */
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

/** What was done with a bot since its present owner has it, below an id, newest first. */
export function loadAudit(sql: Sql, bot: number, before: number, limit: number): Promise<AuditRow[]> {
  return sql.query<AuditRow>(
    `select a.id, a.actor_type, a.actor_id, a.event, a.details, extract(epoch from a.at)::bigint as at
       from bot_audit a join bots b on b.id = a.bot_id
      where a.bot_id = $1 and a.id < $2 and a.at >= b.owned_since order by a.id desc limit $3`,
    [bot, before, limit],
  );
}

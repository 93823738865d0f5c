/**
 * SQL statements for events. An event is a change in a chat that the chat's bots learn from an update, and that
 * the chat may show as a service message. Both are sent after the change was committed.
 */
import { fail } from '../../errors.js';
import { postgresLimits as limits } from '../limits.js';
import { noteStale, type Sql } from '../sql.js';

export type MemberStatus = 'creator' | 'administrator' | 'member' | 'restricted' | 'left' | 'kicked';

/**
 * A member's status and rights. If a restricted member leaves, the status becomes `left`, but the rights stay
 * restricted.
 */
export interface Standing {
  readonly status: MemberStatus;
  /** The rights of an administrator, or the permissions of a restricted member. */
  readonly rights: Readonly<Record<string, boolean>>;
  /** The Unix time in seconds at which the ban or restriction ends. Null or absent if it never ends. */
  readonly until_date?: number | null;
  readonly custom_title?: string | null;
  readonly promoted_by?: number | null;
}

export const isPresent = (status: MemberStatus): boolean => status !== 'left' && status !== 'kicked';

const ended = 'coalesce(until_date <= extract(epoch from now()), false)';

/** Selects the columns of a `Standing`. Treats a ban or restriction that has expired as ended. */
export const standingColumns = `
  case when ${ended} and status = 'kicked' then 'left' when ${ended} and status = 'restricted' then 'member'
       else status end as status,
  case when ${ended} then '{}'::jsonb else rights end as rights,
  case when ${ended} then null else until_date end as until_date, custom_title, promoted_by`;

/** Loads a member's status and rights. Returns null for somebody who was never in the chat. */
export async function loadStanding(sql: Sql, chat: number, member: number): Promise<Standing | null> {
  const [row] = await sql.query<Standing>(
    `select ${standingColumns} from chat_members where chat_id = $1 and member_id = $2`,
    [chat, member],
  );
  return row ?? null;
}

export interface EventLink {
  readonly code: string;
  readonly creator_id: number;
  readonly is_primary: boolean;
  readonly is_revoked: boolean;
  readonly creates_join_request: boolean;
  readonly name: string | null;
  /** The Unix time in seconds at which the link expires. Null if it never expires. */
  readonly expire_date: number | null;
  readonly member_limit: number | null;
  readonly pending: number;
}

export interface MemberEvent {
  readonly id: number;
  readonly member_id: number;
  readonly is_bot: boolean;
  readonly by_id: number;
  readonly was: Standing;
  readonly became: Standing;
  /**
   * The fields of the service message. In these fields, the value `true` stands for the member. Null if there is no
   * service message.
   */
  readonly service: Readonly<Record<string, unknown>> | null;
  /** The invite link by which the member joined or asked to join, or null for other changes. */
  readonly link: EventLink | null;
  /** The bots that may decide on the join request, or null for other changes. */
  readonly request_bots: readonly number[] | null;
  /** The Unix time in seconds at which the change was made. */
  readonly date: number;
}

export type Who = { readonly id: number; readonly is_bot: boolean };

export const outside: Standing = { status: 'left', rights: {} };

/**
 * Stores an event in the transaction of the change. This transaction must hold the chat's lock, so that the order of
 * event ids is the order of the changes. Error: `too_many_requests` if too many of the chat's events are not posted
 * yet.
 */
export async function noteEvent(
  sql: Sql,
  chat: { readonly id: number; readonly user: number },
  member: Who,
  by: number,
  was: Standing,
  became: Standing,
  service: MemberEvent['service'] = null,
  link: EventLink | null = null,
  request_bots: readonly number[] | null = null,
): Promise<void> {
  const added = await sql.query(
    `insert into member_events
       (chat_id, user_id, member_id, is_bot, by_id, was, became, service, link, request_bots)
     select $1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8::jsonb, $9::jsonb, $10::bigint[]
      where (select count(*) from member_events where chat_id = $1 and user_id = $2)
            < ${limits.member_events_per_chat_max} returning 1`,
    [
      ...[chat.id, chat.user, member.id, member.is_bot, by, JSON.stringify(was), JSON.stringify(became)],
      ...[service && JSON.stringify(service), link && JSON.stringify(link), request_bots],
    ],
  );
  if (added.length === 0) fail('too_many_requests', { retry_after: 1 });
  await noteStale(sql, [['member_events', chat.id, chat.user]]);
}

export const noteService = (
  sql: Sql,
  chat: number,
  by: Who,
  service: NonNullable<MemberEvent['service']>,
): Promise<void> => noteEvent(sql, { id: chat, user: 0 }, by, by.id, outside, outside, service);

export function noteRequest(
  sql: Sql,
  chat: number,
  user: number,
  bots: readonly number[],
  link: EventLink,
): Promise<void> {
  const person = { id: user, is_bot: false };
  return noteEvent(sql, { id: chat, user: 0 }, person, user, outside, outside, null, link, bots);
}

export function pendingEvents(sql: Sql, chat: number, user: number, limit: number): Promise<MemberEvent[]> {
  return sql.query<MemberEvent>(
    `select id, member_id, is_bot, by_id, was, became, service, link, request_bots,
            floor(extract(epoch from created_at))::bigint as date
       from member_events where chat_id = $1 and user_id = $2 order by id limit $3`,
    [chat, user, limit],
  );
}

export async function removeEvents(sql: Sql, ids: readonly number[]): Promise<void> {
  await sql.query('delete from member_events where id = any($1)', [ids]);
}

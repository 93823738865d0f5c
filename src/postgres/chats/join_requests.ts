/** SQL statements for joining a chat by an invite link, and for join requests. */
import { type ErrorName, fail } from '../../errors.js';
import { lockPerson } from '../accounts/users.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, type Sql, seconds } from '../sql.js';
import { isPresent, loadStanding, noteRequest } from './events.js';
import { asInviter, type InviteLinkRow, loadLink, loadUsableLink } from './invite_links.js';
import { changeMember, lockChat } from './members.js';

const newcomer = { status: 'member', rights: {} } as const;

/** Refuses a person whose account was suspended while the call was running. */
async function mustBeActive(sql: Sql, user: number, refusal: ErrorName): Promise<void> {
  const active = await sql.some`
    select 1 from users where id = ${user} and deleted_at is null and suspended_at is null`;
  if (!active) fail(refusal);
}

/** Stores a join request, and an event for the bots that may decide on it. A repeated call changes nothing. */
async function ask(sql: Sql, chat: number, user: number, link: InviteLinkRow): Promise<void> {
  const { of_chat, of_user } = await sql.one<{ of_chat: number; of_user: number }>`
    select (select count(*) from join_requests where chat_id = ${chat} and user_id <> ${user})::int as of_chat,
      (select count(*) from join_requests where user_id = ${user} and chat_id <> ${chat})::int as of_user`;
  if (of_chat >= limits.join_requests_per_chat_max || of_user >= limits.join_requests_per_user_max)
    fail('too_many_join_requests');
  const added = await sql.some`
    insert into join_requests (chat_id, user_id, link_id) values (${chat}, ${user}, ${link.id})
    on conflict do nothing returning id`;
  if (!added) return;
  const bots = await sql.column<number>`
    select member_id from chat_members where chat_id = ${chat} and is_bot and status = 'administrator'
      and rights -> 'can_invite_users' = 'true' order by member_id`;
  if (bots.length > 0) await noteRequest(sql, chat, user, bots, { ...link, pending: link.pending + 1 });
}

export interface Joined {
  readonly chat_id: number;
  /** The outcome. `member` means that the person was already in the chat. */
  readonly status: 'joined' | 'requested' | 'member';
}

/**
 * Makes a person a member through a link, or stores a join request if the link requires one. Errors:
 * `invite_link_expired` for a link that is unknown, revoked, expired or used up, `kicked_from_chat`, `too_many_chats`,
 * `too_many_join_requests`, `unauthorized`.
 */
export function joinByLink(db: Database, code: string, user: number): Promise<Joined> {
  return db.transaction(async (sql) => {
    const chat_id = await sql.firstValue<number>`select chat_id from invite_links where code = ${code}`;
    if (chat_id === undefined) return fail('invite_link_expired');
    await lockChat(sql, chat_id);
    const former = await loadStanding(sql, chat_id, user);
    if (former && isPresent(former.status)) return { chat_id, status: 'member' };
    // Loads the link under the chat's lock, so that only one person can use the last join that the link allows, and so
    // that a revoked link is refused immediately.
    const link = (await loadUsableLink(sql, code)) ?? fail('invite_link_expired');
    if (former?.status === 'kicked') fail('kicked_from_chat');
    await mustBeActive(sql, user, 'unauthorized');
    if (link.creates_join_request) {
      await ask(sql, chat_id, user, link);
      return { chat_id, status: 'requested' };
    }
    await changeMember(sql, chat_id, { id: user, is_bot: false }, newcomer, user, { link });
    return { chat_id, status: 'joined' };
  });
}

export type RequestMissing = 'join_request_missing' | 'join_request_not_found';

/**
 * Removes a join request and returns the id of its link, which is null if the link was deleted. Throws the errors of
 * `decideRequest`.
 */
async function takeRequest(
  sql: Sql,
  chat: number,
  user: number,
  missing: RequestMissing,
): Promise<number | null> {
  const former = await loadStanding(sql, chat, user);
  if (former?.status === 'kicked') fail(missing);
  const found = await sql.first<{ link_id: number | null }>`
    delete from join_requests where chat_id = ${chat} and user_id = ${user} returning link_id`;
  return found === null ? fail(missing) : found.link_id;
}

export type Decision = 'approve' | 'decline';

/**
 * Decides on a join request. An approved person becomes a member. A declined person may ask again. Errors:
 * `chat_not_found`, `join_requests_not_allowed`, `already_participant`, `missing`. Additional errors of an approval:
 * `too_many_chats`, and `missing` for people whose account is suspended.
 */
export const decideRequest = (
  db: Database,
  chat: number,
  by: number,
  user: number,
  decision: Decision,
  missing: RequestMissing,
) =>
  asInviter(db, chat, by, 'join_requests_not_allowed', async (sql) => {
    const approved = decision === 'approve';
    const former = await loadStanding(sql, chat, user);
    if (former && isPresent(former.status)) fail('already_participant');
    // Locks the person before the request. The deletion of an account takes these locks in the same order, so the two
    // cannot deadlock.
    if (approved) await lockPerson(sql, user, missing);
    const id = await takeRequest(sql, chat, user, missing);
    if (!approved) return;
    await mustBeActive(sql, user, missing);
    const link = id === null ? null : await loadLink(sql, id);
    await changeMember(sql, chat, { id: user, is_bot: false }, newcomer, by, { link });
  });

/**
 * Withdraws a person's request to join the chat to which a link leads. Errors: `invite_link_expired` for an unknown
 * link, `join_request_not_found`.
 */
export const withdrawRequest = (db: Database, code: string, user: number): Promise<void> =>
  db.transaction(async (sql) => {
    const chat = await sql.firstValue<number>`select chat_id from invite_links where code = ${code}`;
    if (chat === undefined) fail('invite_link_expired');
    const found = await sql.some`
      delete from join_requests where chat_id = ${chat} and user_id = ${user} returning id`;
    if (!found) fail('join_request_not_found');
  });

export const hasAsked = (sql: Sql, chat: number, user: number) =>
  sql.some`select 1 from join_requests where chat_id = ${chat} and user_id = ${user}`;

export interface JoinRequestRow {
  readonly id: number;
  readonly user_id: number;
  /** The Unix time in seconds at which the request was made. */
  readonly date: number;
}

export const loadRequests = (
  sql: Sql,
  chat: number,
  before: number,
  limit: number,
) => sql.rows<JoinRequestRow>`
  select id, user_id, ${seconds('created_at')} as date from join_requests
  where chat_id = ${chat} and id < ${before} order by id desc limit ${limit}`;

/** SQL statements for the invite links of groups and channels. */
import { type ErrorName, fail } from '../../errors.js';
import { hasRight } from '../../rules/rights.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, fragment, noteStale, type Sql } from '../sql.js';
import { type EventLink, loadStanding, outside } from './events.js';
import { lockChat } from './members.js';

export interface LinkSettings {
  readonly name: string | null;
  /** The Unix time in seconds at which the link expires. Null if the link does not expire. */
  readonly expire_date: number | null;
  /** The maximum number of current members who joined by the link, or null for no maximum. */
  readonly member_limit: number | null;
  readonly creates_join_request: boolean;
}

export interface InviteLinkRow extends EventLink {
  readonly id: number;
  readonly chat_id: number;
  /** How many current members joined by the link. */
  readonly members: number;
}

const ended = fragment(
  '(l.revoked_at is not null or coalesce(l.expire_date <= extract(epoch from clock_timestamp()), false))',
);

const columns = fragment(`l.id, l.chat_id, l.code, l.creator_id, l.is_primary, l.creates_join_request, l.name,
  l.expire_date, l.member_limit, l.members, l.revoked_at is not null as is_revoked,
  (select count(*) from join_requests r where r.link_id = l.id)::int as pending`);

export const loadLink = (sql: Sql, id: number) =>
  sql.first<InviteLinkRow>`select ${columns} from invite_links l where l.id = ${id}`;

export const loadLinks = (sql: Sql, chat: number, before: number, limit: number) => sql.rows<InviteLinkRow>`
  select ${columns} from invite_links l
  where l.chat_id = ${chat} and l.revoked_at is null and l.id < ${before} order by l.id desc limit ${limit}`;

/**
 * Returns the link if it can be used now, otherwise null. Joining may still fail, because another person may take the
 * link's last place first.
 */
export const loadUsableLink = (sql: Sql, code: string) => sql.first<InviteLinkRow>`
  select ${columns} from invite_links l
  where l.code = ${code} and not ${ended} and (l.member_limit is null or l.members < l.member_limit)`;

/**
 * Runs `change` under the chat's lock if `by` may invite people. Errors: `chat_not_found`, and `refusal` if `by` lacks
 * the right.
 */
export function asInviter<T>(
  db: Database,
  chat: number,
  by: number,
  refusal: ErrorName,
  change: (sql: Sql) => Promise<T>,
): Promise<T> {
  return db.transaction(async (sql) => {
    await lockChat(sql, chat);
    if (!hasRight((await loadStanding(sql, chat, by)) ?? outside, 'can_invite_users')) fail(refusal);
    return change(sql);
  });
}

const manage = <T>(db: Database, chat: number, by: number, change: (sql: Sql) => Promise<T>) =>
  asInviter(db, chat, by, 'invite_links_not_allowed', change);

/** Revokes links. If the chat then has too many revoked links, deletes the oldest of them. */
async function endLinks(sql: Sql, chat: number, ids: readonly number[]): Promise<void> {
  await sql.run`update invite_links set revoked_at = now() where id = any(${ids}::bigint[])`;
  await sql.run`
    delete from invite_links where chat_id = ${chat} and revoked_at is not null and id not in (
      select id from invite_links where chat_id = ${chat} and revoked_at is not null
      order by revoked_at desc, id desc limit ${limits.revoked_links_per_chat_max})`;
}

/**
 * If the chat cannot have another link, revokes its expired links. Error: `too_many_invite_links` if no link has
 * expired.
 */
async function makeRoom(sql: Sql, chat: number): Promise<void> {
  const links = await sql.rows<{ id: number; ended: boolean }>`
    select l.id, ${ended} as ended from invite_links l where l.chat_id = ${chat} and l.revoked_at is null`;
  if (links.length < limits.links_per_chat_max) return;
  const expired = links.filter((link) => link.ended).map(({ id }) => id);
  if (expired.length === 0) fail('too_many_invite_links');
  await endLinks(sql, chat, expired);
}

async function checkExpiry(sql: Sql, { expire_date }: LinkSettings): Promise<void> {
  const past = await sql.value<boolean>`
    select coalesce(${expire_date}::bigint <= extract(epoch from now()), false)`;
  if (past) fail('link_expiry_invalid');
}

/**
 * Adds a link and returns its id. Errors: `chat_not_found`, `invite_links_not_allowed`, `link_expiry_invalid`,
 * `too_many_invite_links`.
 */
export const createLink = (db: Database, chat: number, by: number, code: string, settings: LinkSettings) =>
  manage(db, chat, by, async (sql) => {
    await checkExpiry(sql, settings);
    await makeRoom(sql, chat);
    const { name, expire_date, member_limit, creates_join_request } = settings;
    return sql.value<number>`
      insert into invite_links
        (chat_id, code, creator_id, is_primary, creates_join_request, name, expire_date, member_limit)
      values (${chat}, ${code}, ${by}, false, ${creates_join_request}, ${name}, ${expire_date}, ${member_limit})
      returning id`;
  });

/**
 * Adds a primary link. Also refreshes the copy of the chat's details in Redis, from which `getChat` reads the primary
 * link.
 */
async function addPrimary(sql: Sql, chat: number, creator: number, code: string): Promise<number> {
  await makeRoom(sql, chat);
  const id = await sql.value<number>`
    insert into invite_links (chat_id, code, creator_id, is_primary, creates_join_request)
    values (${chat}, ${code}, ${creator}, true, false) returning id`;
  await sql.run`update chats set version = nextval('control_versions') where id = ${chat}`;
  await noteStale(sql, [
    ['chat', chat],
    ['details', chat],
  ]);
  return id;
}

/**
 * Replaces the primary link of `by` and returns the id of the new link. Errors: `chat_not_found`,
 * `invite_links_not_allowed`, `too_many_invite_links`.
 */
export const exportLink = (db: Database, chat: number, by: number, code: string) =>
  manage(db, chat, by, async (sql) => {
    const former = await sql.firstValue<number>`
      select id from invite_links
      where chat_id = ${chat} and creator_id = ${by} and is_primary and revoked_at is null`;
    if (former !== undefined) await endLinks(sql, chat, [former]);
    return addPrimary(sql, chat, by, code);
  });

/**
 * How a call identifies a link. The creator of the link uses its code. Other administrators who may invite use its id.
 */
export type LinkName = { readonly code: string } | { readonly id: number };

interface Named {
  readonly id: number;
  readonly creator_id: number;
  readonly is_primary: boolean;
}

/** Finds a link that is not revoked. Error: `invite_link_expired`. */
async function findLink(sql: Sql, chat: number, by: number, name: LinkName): Promise<Named> {
  const found =
    'code' in name
      ? await sql.first<Named>`
          select id, creator_id, is_primary from invite_links
          where code = ${name.code} and chat_id = ${chat} and creator_id = ${by} and revoked_at is null`
      : await sql.first<Named>`
          select id, creator_id, is_primary from invite_links
          where id = ${name.id} and chat_id = ${chat} and revoked_at is null`;
  return found ?? fail('invite_link_expired');
}

/**
 * Replaces the settings of a link and returns its id. The link must not be primary. Errors: `chat_not_found`,
 * `invite_links_not_allowed`, `invite_link_expired`, `invite_link_primary`, `link_expiry_invalid`.
 */
export const editLink = (db: Database, chat: number, by: number, name: LinkName, settings: LinkSettings) =>
  manage(db, chat, by, async (sql) => {
    const { id, is_primary } = await findLink(sql, chat, by, name);
    if (is_primary) fail('invite_link_primary');
    await checkExpiry(sql, settings);
    const { name: title, expire_date, member_limit, creates_join_request } = settings;
    await sql.run`
      update invite_links set name = ${title}, expire_date = ${expire_date}, member_limit = ${member_limit},
        creates_join_request = ${creates_join_request} where id = ${id}`;
    return id;
  });

/**
 * Revokes a link and returns its id. If the link is primary, replaces it with a new primary link that has the code
 * `code`. Errors: `chat_not_found`, `invite_links_not_allowed`, `invite_link_expired`.
 */
export const revokeLink = (db: Database, chat: number, by: number, name: LinkName, code: string) =>
  manage(db, chat, by, async (sql) => {
    const { id, creator_id, is_primary } = await findLink(sql, chat, by, name);
    await endLinks(sql, chat, [id]);
    const creator = (await loadStanding(sql, chat, creator_id)) ?? outside;
    if (is_primary && hasRight(creator, 'can_invite_users')) await addPrimary(sql, chat, creator_id, code);
    return id;
  });

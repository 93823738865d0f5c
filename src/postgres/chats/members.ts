/** SQL statements for the members of chats. */
import { fail } from '../../errors.js';
import { isPermitted } from '../../rules/permissions.js';
import { hasRight } from '../../rules/rights.js';
import { lockPerson } from '../accounts/users.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, noteStale, one, type Sql } from '../sql.js';
import { type ChatRow, joinList, type MemberRow, memberColumns } from './chats.js';
import {
  type EventLink,
  isPresent,
  loadStanding,
  type MemberEvent,
  type MemberStatus,
  noteEvent,
  outside,
  type Standing,
  type Who,
} from './events.js';

export type { Standing } from './events.js';

const present = "status in ('creator', 'administrator', 'member', 'restricted')";

/** Compares the rights as sets, because jsonb does not keep the order of keys. */
const sameRights = (a: Standing['rights'], b: Standing['rights']) => {
  const set = (rights: Standing['rights']) =>
    Object.keys(rights)
      .filter((name) => rights[name])
      .sort()
      .join();
  return set(a) === set(b);
};

export const sameStanding = (a: Standing, b: Standing): boolean =>
  a.status === b.status &&
  sameRights(a.rights, b.rights) &&
  (a.until_date ?? 0) === (b.until_date ?? 0) &&
  (a.custom_title ?? '') === (b.custom_title ?? '');

/** Returns the title of an administrator. The title stays until somebody changes it or demotes the administrator. */
const titleOf = (was: Standing, { status, custom_title }: Standing): string | null =>
  (status === 'administrator'
    ? (custom_title ?? (custom_title === undefined ? was.custom_title : null))
    : null) ?? null;

/** Keeps a member's restrictions when the member leaves, and applies them again when the member returns. */
function withRestrictions(was: Standing, became: Standing): Standing {
  const { rights, until_date = null } = was;
  if (was.status === 'restricted' && became.status === 'left') return { ...became, rights, until_date };
  const back = was.status === 'left' && became.status === 'member' && Object.keys(rights).length > 0;
  return back ? { status: 'restricted', rights, until_date } : became;
}

/**
 * Returns the service message for a member who joins or leaves a group, otherwise null. Channels have no such message.
 */
function serviceOf(type: ChatRow['type'], was: Standing, became: Standing): MemberEvent['service'] {
  const [before, after] = [isPresent(was.status), isPresent(became.status)];
  if (type !== 'group' || before === after) return null;
  return after ? { new_chat_members: true } : { left_chat_member: true };
}

/**
 * Checks the limits on bots and administrators. Counts them each time, because even a large chat has only a few.
 * Returns the number of bots. Errors: `too_many_chat_bots`, `too_many_administrators`.
 */
async function countFew(sql: Sql, chat: number): Promise<number> {
  const { bots, administrators } = await one<{ bots: number; administrators: number }>(
    sql,
    `select (select count(*) from chat_members where chat_id = $1 and is_bot and ${present}) as bots,
            (select count(*) from chat_members where chat_id = $1
                and status in ('creator', 'administrator')) as administrators`,
    [chat],
  );
  if (Number(bots) > limits.bots_per_chat_max) fail('too_many_chat_bots');
  if (Number(administrators) > limits.administrators_per_chat_max) fail('too_many_administrators');
  return Number(bots);
}

/**
 * Checks the limit on banned members. If the limit is reached, sets members whose ban has expired to `left`, so that
 * they no longer count, and checks again. Error: `too_many_banned`.
 */
async function countBanned(sql: Sql, chat: number): Promise<void> {
  const isFull = async () => {
    const { banned } = await one<{ banned: number }>(
      sql,
      `select count(*) as banned from chat_members where chat_id = $1 and status = 'kicked'`,
      [chat],
    );
    return Number(banned) >= limits.banned_per_chat_max;
  };
  if (!(await isFull())) return;
  await sql.query(
    `update chat_members set status = 'left', rights = '{}', until_date = null
      where chat_id = $1 and status = 'kicked' and until_date <= extract(epoch from now())`,
    [chat],
  );
  if (await isFull()) fail('too_many_banned');
}

/** Deletes a person's invitation, even if it was declined, and the person's join request. */
export async function removeInvitation(sql: Sql, chat: number, user: number): Promise<void> {
  await sql.query('delete from chat_invitations where user_id = $1 and chat_id = $2', [user, chat]);
  await sql.query('delete from join_requests where user_id = $1 and chat_id = $2', [user, chat]);
}

type JoinLink = EventLink & { readonly id: number };

/**
 * Updates a link's member count. With `link`, the member joins through this link. Without it, the member leaves, and
 * the count of the link through which the member joined decreases.
 */
async function countByLink(sql: Sql, chat: number, member: number, link: JoinLink | null): Promise<void> {
  if (link !== null) {
    await sql.query('update invite_links set members = members + 1 where id = $1', [link.id]);
    return;
  }
  await sql.query(
    `update invite_links l set members = l.members - 1 from chat_members m
      where m.chat_id = $1 and m.member_id = $2 and l.id = m.link_id`,
    [chat, member],
  );
}

interface ChangeOptions {
  readonly silent?: boolean;
  /** Whether the new status replaces earlier restrictions. */
  readonly exact?: boolean;
  readonly link?: JoinLink | null;
}

export async function changeMember(
  sql: Sql,
  chat: number,
  member: Who,
  wanted: Standing & { readonly status: Exclude<MemberStatus, 'creator'> },
  by: number,
  { silent = false, exact = false, link = null }: ChangeOptions = {},
): Promise<MemberRow> {
  // Before a person is added, locks the person and fails if the account has ended. A person whose account has ended can
  // still be removed from the chat.
  if (!member.is_bot && isPresent(wanted.status)) await lockPerson(sql, member.id, 'chat_member_not_found');
  const was = (await loadStanding(sql, chat, member.id)) ?? outside;
  const became = exact ? wanted : withRestrictions(was, wanted);
  if (was.status === 'creator') fail('not_enough_rights');
  // Refuses to let somebody leave who is not in the chat. Otherwise a banned person could end the ban by leaving.
  if (!exact && became.status === 'left' && !isPresent(was.status)) fail('not_chat_member');
  if (became.status === 'kicked' && was.status !== 'kicked') await countBanned(sql, chat);
  const [before, after] = [isPresent(was.status), isPresent(became.status)];
  if ((before && !after) || link !== null) await countByLink(sql, chat, member.id, link);
  const row = await one<MemberRow>(
    sql,
    `insert into chat_members
       (chat_id, member_id, is_bot, status, rights, until_date, custom_title, promoted_by, link_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $10)
     on conflict (chat_id, member_id) do update set status = excluded.status, rights = excluded.rights,
       until_date = excluded.until_date, custom_title = excluded.custom_title, promoted_by = excluded.promoted_by,
       link_id = case when $11 then chat_members.link_id else excluded.link_id end,
       version = nextval('control_versions'), joined_at = case when $9 then now() else chat_members.joined_at end
     returning member_id, is_bot, status, rights, until_date, custom_title, promoted_by, version`,
    [
      ...[chat, member.id, member.is_bot, became.status, JSON.stringify(became.rights)],
      ...[became.until_date ?? null, titleOf(was, became), became.promoted_by ?? null],
      ...[!before, link?.id ?? null, before && after],
    ],
  );
  const bots = await countFew(sql, chat);
  // Updates the member count by the difference, because counting all members would be slow in large channels.
  const { type } = await one<Pick<ChatRow, 'type'>>(
    sql,
    "update chats set member_count = member_count + $2, version = nextval('control_versions') where id = $1 returning type",
    [chat, Number(after) - Number(before)],
  );
  if (!member.is_bot) {
    await joinList(sql, member.id);
    // Removes the person's invitation. A person who joined no longer needs it. A person who was removed must not return
    // with it.
    await removeInvitation(sql, chat, member.id);
  }
  await noteStale(sql, [
    ['chat', chat],
    ['member', chat, member.id],
    ['administrators', chat],
    ...(member.is_bot ? [] : ([['chats', member.id]] as const)),
  ]);
  const same = sameStanding(was, became);
  const hasBots = member.is_bot || bots > 0;
  const service = silent ? null : serviceOf(type, was, became);
  if (!same && (hasBots || service))
    await noteEvent(sql, { id: chat, user: 0 }, member, by, was, became, service, link);
  return row;
}

/**
 * Fails if the person `by` may not change this member. Callers have already checked the copies in Redis, but those may
 * lack a change that was just committed. Only people with `can_restrict_members` may add a banned person, which ends
 * the ban. Errors: `not_enough_rights`, `person_banned`, `chat_not_found` for a chat of two people.
 */
export async function mayChange(
  sql: Sql,
  chat: number,
  { type, permissions }: Pick<ChatRow, 'type' | 'permissions'>,
  former: Standing | null,
  status: MemberStatus,
  by: number,
): Promise<void> {
  if (type === 'person') fail('chat_not_found');
  const own = (await loadStanding(sql, chat, by)) ?? outside;
  const mayRestrict = hasRight(own, 'can_restrict_members');
  const may = status === 'kicked' ? mayRestrict : isPermitted(own, permissions, 'can_invite_users');
  const changesAdministrator = status === 'administrator' || former?.status === 'administrator';
  if (!may || (changesAdministrator && own.status !== 'creator')) fail('not_enough_rights');
  if (!mayRestrict && isPresent(status)) {
    if (former?.status === 'restricted') fail('not_enough_rights');
    if (former?.status === 'kicked') fail('person_banned');
  }
}

/** Locks a chat, so that only one transaction at a time changes its members. Error: `chat_not_found`. */
export async function lockChat(sql: Sql, chat: number): Promise<Pick<ChatRow, 'type' | 'permissions'>> {
  const [found] = await sql.query<Pick<ChatRow, 'type' | 'permissions'>>(
    'select type, permissions from chats where id = $1 for update',
    [chat],
  );
  return found ?? fail('chat_not_found');
}

/**
 * Sets the status of a person or bot in a chat. `by` is the person who makes the change. Errors: `too_many_chat_bots`,
 * `too_many_administrators`, `too_many_banned`, `too_many_chats`, `not_enough_rights` for the creator, and the errors
 * of `mayChange`.
 */
export function putMember(
  db: Database,
  chat: number,
  member: Who,
  status: Exclude<MemberStatus, 'creator'>,
  rights: Standing['rights'],
  by: number,
  silent = false,
): Promise<MemberRow> {
  return db.transaction(async (sql) => {
    const locked = await lockChat(sql, chat);
    if (by !== member.id)
      await mayChange(sql, chat, locked, await loadStanding(sql, chat, member.id), status, by);
    const promoted_by = status === 'administrator' ? by : null;
    return changeMember(sql, chat, member, { status, rights, promoted_by }, by, { silent });
  });
}

/**
 * Makes the first administrator who is a person the new creator of the chat. If there is no such administrator, the
 * chat has no creator. Returns the new creator or null. Returns false if `from` is not the creator.
 */
export function passOnChat(db: Database, chat: number, from: number): Promise<number | null | false> {
  return db.transaction(async (sql) => {
    await sql.query('select 1 from chats where id = $1 for update', [chat]);
    const mine = await sql.query(
      `update chat_members set status = 'member', rights = '{}', version = nextval('control_versions')
        where chat_id = $1 and member_id = $2 and status = 'creator' returning 1`,
      [chat, from],
    );
    if (mine.length === 0) return false;
    const [next] = await sql.query<{ member_id: number; rights: Standing['rights'] }>(
      `select member_id, rights from chat_members
        where chat_id = $1 and status = 'administrator' and not is_bot order by member_id limit 1`,
      [chat],
    );
    const became: Standing = { status: 'creator', rights: {} };
    if (next) {
      await sql.query(
        `update chat_members set status = 'creator', rights = '{}', version = nextval('control_versions')
          where chat_id = $1 and member_id = $2`,
        [chat, next.member_id],
      );
      await sql.query('update chats set creator_id = $2 where id = $1', [chat, next.member_id]);
    }
    await sql.query("update chats set version = nextval('control_versions') where id = $1", [chat]);
    await noteStale(sql, [
      ['chat', chat],
      ['administrators', chat],
      ['member', chat, from],
      ...(next ? ([['member', chat, next.member_id]] as const) : []),
    ]);
    const who = next && { id: next.member_id, is_bot: false };
    const was: Standing = { status: 'administrator', rights: next?.rights ?? {} };
    if (who && (await countFew(sql, chat)) > 0)
      await noteEvent(sql, { id: chat, user: 0 }, who, from, was, became);
    return next?.member_id ?? null;
  });
}

/**
 * Adds a person to a public chat. Returns false if the person is already a member. Errors: `chat_not_found`,
 * `kicked_from_chat`, `too_many_chats`.
 */
export function joinChat(db: Database, chat: number, user: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    const [found] = await sql.query<{ private: boolean }>(
      'select private from chats where id = $1 for update',
      [chat],
    );
    const former = await loadStanding(sql, chat, user);
    if (former && isPresent(former.status)) return false;
    if (!found || found.private) return fail('chat_not_found');
    if (former?.status === 'kicked') fail('kicked_from_chat');
    await changeMember(sql, chat, { id: user, is_bot: false }, { status: 'member', rights: {} }, user);
    return true;
  });
}

/**
 * Blocks or unblocks a bot. Returns false if the state stays the same, or if the person and the bot have no direct
 * chat.
 */
export function setBlocked(db: Database, bot: number, user: number, blocked: boolean): Promise<boolean> {
  return db.transaction(async (sql) => {
    const rows = await sql.query(
      `update direct_chats set blocked = $3, version = nextval('control_versions')
        where bot_id = $1 and user_id = $2 and blocked <> $3 returning 1`,
      [bot, user, blocked],
    );
    if (rows.length === 0) return false;
    await noteStale(sql, [['chat', bot, user]]);
    const standing = (out: boolean): Standing => ({ status: out ? 'kicked' : 'member', rights: {} });
    const member = { id: bot, is_bot: true };
    await noteEvent(sql, { id: bot, user }, member, user, standing(!blocked), standing(blocked));
    return true;
  });
}

/** Loads a chat's administrators and version. Returns null if the chat does not exist. */
export async function loadAdministrators(
  sql: Sql,
  chat: number,
): Promise<{ readonly version: number; readonly rows: MemberRow[] } | null> {
  const [found] = await sql.query<{ version: number }>('select version from chats where id = $1', [chat]);
  if (!found) return null;
  const rows = await sql.query<MemberRow>(
    `select ${memberColumns} from chat_members
      where chat_id = $1 and status in ('creator', 'administrator') order by member_id`,
    [chat],
  );
  return { version: found.version, rows };
}

export async function loadMemberships(sql: Sql, bot: number, limit: number): Promise<number[]> {
  const rows = await sql.query<{ chat_id: number }>(
    `select chat_id from chat_members where member_id = $1 and ${present} order by chat_id limit $2`,
    [bot, limit],
  );
  return rows.map(({ chat_id }) => chat_id);
}

/**
 * Returns those of `people` who share a group with `who`, or a channel that one of the two manages. Reads the chats of
 * each person (a limited number) and never the members of a chat. `offset 0` prevents the planner from reading members
 * first.
 */
export async function loadAcquaintances(sql: Sql, who: number, people: readonly number[]): Promise<number[]> {
  const rows = await sql.query<{ id: number }>(
    `select p.id from unnest($2::bigint[]) as p (id)
      where exists (
        select 1
          from (select chat_id, status from chat_members where member_id = p.id and ${present} offset 0) theirs,
               lateral (select status from chat_members
                         where chat_id = theirs.chat_id and member_id = $1 and ${present} offset 0) own
         where theirs.status <> 'member' or own.status <> 'member'
            or exists (select 1 from chats c where c.id = theirs.chat_id and c.type = 'group'))`,
    [who, people],
  );
  return rows.map(({ id }) => id);
}

/** Statements on the members of chats, and the events that report member changes to a chat's bots. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { lockPerson } from '../accounts/users.js';
import { type Database, noteStale, one, type Sql } from '../sql.js';
import { joinList, type MemberRow, type MemberStatus } from './chats.js';

/** Status and rights of a member. */
export interface Standing {
  readonly status: MemberStatus;
  readonly rights: Readonly<Record<string, boolean>>;
}

export interface MemberEvent {
  readonly id: number;
  readonly member_id: number;
  readonly is_bot: boolean;
  /** id of the actor who made the change */
  readonly by_id: number;
  readonly was: Standing;
  readonly became: Standing;
  /** when the member changed, Unix time in seconds */
  readonly date: number;
}

type Who = { readonly id: number; readonly is_bot: boolean };

const present = "status in ('creator', 'administrator', 'member')";
const isPresent = (status: MemberStatus) => status !== 'left' && status !== 'kicked';
const outside: Standing = { status: 'left', rights: {} };

/** Compares rights key by key, because jsonb does not keep the order of keys. */
const sameRights = (a: Standing['rights'], b: Standing['rights']) => {
  const set = (rights: Standing['rights']) =>
    Object.keys(rights)
      .filter((name) => rights[name])
      .sort()
      .join();
  return set(a) === set(b);
};

/** Stores an event in the transaction of the change. The chat's lock makes event ids follow the order of changes. */
async function noteEvent(
  sql: Sql,
  chat: { readonly id: number; readonly user: number },
  member: Who,
  by: number,
  was: Standing,
  became: Standing,
): Promise<void> {
  await sql.query(
    `insert into member_events (chat_id, user_id, member_id, is_bot, by_id, was, became)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [chat.id, chat.user, member.id, member.is_bot, by, JSON.stringify(was), JSON.stringify(became)],
  );
  await noteStale(sql, [['member_events', chat.id, chat.user]]);
}

/**
 * Counts bots and administrators, of which even a large chat has few. Errors: `too_many_chat_bots`,
 * `too_many_administrators`.
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

/** Changes a member under the lock of the chat's row. */
export async function changeMember(
  sql: Sql,
  chat: number,
  member: Who,
  became: Standing & { readonly status: Exclude<MemberStatus, 'creator'> },
  by: number,
): Promise<MemberRow> {
  // A person whose account has ended may be removed from chats but not added.
  if (!member.is_bot && isPresent(became.status)) await lockPerson(sql, member.id, 'chat_member_not_found');
  const [former] = await sql.query<Standing>(
    'select status, rights from chat_members where chat_id = $1 and member_id = $2',
    [chat, member.id],
  );
  const was = former ?? outside;
  if (was.status === 'creator') fail('not_enough_rights');
  // A person who was removed at this moment must not become one who may join again.
  if (became.status === 'left' && !isPresent(was.status)) fail('not_chat_member');
  const row = await one<MemberRow>(
    sql,
    `insert into chat_members (chat_id, member_id, is_bot, status, rights) values ($1, $2, $3, $4, $5)
     on conflict (chat_id, member_id) do update set status = excluded.status, rights = excluded.rights,
       version = nextval('control_versions'), joined_at = case when $6 then now() else chat_members.joined_at end
     returning member_id, is_bot, status, rights, version`,
    [
      ...[chat, member.id, member.is_bot, became.status, JSON.stringify(became.rights)],
      !isPresent(was.status),
    ],
  );
  const bots = await countFew(sql, chat);
  // Updates the count by the difference: counting again would make each subscriber of a large channel more expensive
  // than the last.
  await sql.query(
    "update chats set member_count = member_count + $2, version = nextval('control_versions') where id = $1",
    [chat, Number(isPresent(became.status)) - Number(isPresent(was.status))],
  );
  if (!member.is_bot) {
    await joinList(sql, member.id);
    // Deletes the invitation: a person who joined does not need it, and a removed person must not return with it.
    await sql.query('delete from chat_invitations where user_id = $1 and chat_id = $2', [member.id, chat]);
  }
  await noteStale(sql, [
    ['chat', chat],
    ['member', chat, member.id],
    ['administrators', chat],
    ...(member.is_bot ? [] : ([['chats', member.id]] as const)),
  ]);
  const same = was.status === became.status && sameRights(was.rights, became.rights);
  const heard = member.is_bot || bots > 0;
  if (!same && heard) await noteEvent(sql, { id: chat, user: 0 }, member, by, was, became);
  return row;
}

/**
 * Sets the status of a person or bot in a chat; `by` made the change. Errors: `too_many_chat_bots`,
 * `too_many_administrators`, `too_many_chats`, `not_enough_rights` for the creator.
 */
export function putMember(
  db: Database,
  chat: number,
  member: Who,
  status: Exclude<MemberStatus, 'creator'>,
  rights: Standing['rights'],
  by: number,
): Promise<MemberRow> {
  return db.transaction(async (sql) => {
    await sql.query('select 1 from chats where id = $1 for update', [chat]);
    return changeMember(sql, chat, member, { status, rights }, by);
  });
}

/**
 * Passes the creator's role of a chat on to the first administrator who is a person; a chat without one continues
 * without a creator. Returns the new creator, or null; false when `from` is not the creator.
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
 * Adds a person to a public chat. Returns false if they are in it already. Errors: `chat_not_found`,
 * `kicked_from_chat`, `too_many_chats`.
 */
export function joinChat(db: Database, chat: number, user: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    const [found] = await sql.query<{ private: boolean }>(
      'select private from chats where id = $1 for update',
      [chat],
    );
    const [former] = await sql.query<Standing>(
      'select status, rights from chat_members where chat_id = $1 and member_id = $2',
      [chat, user],
    );
    if (former && isPresent(former.status)) return false;
    if (!found || found.private) return fail('chat_not_found');
    if (former?.status === 'kicked') fail('kicked_from_chat');
    await changeMember(sql, chat, { id: user, is_bot: false }, { status: 'member', rights: {} }, user);
    return true;
  });
}

/** Blocks or unblocks a bot for a person. Returns false if nothing changes, or if they have no direct chat. */
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

/** The creator and the administrators of a chat, with the chat's version. Null when there is no such chat. */
export async function loadAdministrators(
  sql: Sql,
  chat: number,
): Promise<{ readonly version: number; readonly rows: MemberRow[] } | null> {
  const [found] = await sql.query<{ version: number }>('select version from chats where id = $1', [chat]);
  if (!found) return null;
  const rows = await sql.query<MemberRow>(
    `select member_id, is_bot, status, rights, version from chat_members
      where chat_id = $1 and status in ('creator', 'administrator') order by member_id`,
    [chat],
  );
  return { version: found.version, rows };
}

/** Groups and channels that a bot is in, at most `limit`. */
export async function loadMemberships(sql: Sql, bot: number, limit: number): Promise<number[]> {
  const rows = await sql.query<{ chat_id: number }>(
    `select chat_id from chat_members where member_id = $1 and ${present} order by chat_id limit $2`,
    [bot, limit],
  );
  return rows.map(({ chat_id }) => chat_id);
}

/** Events of a chat that have not been delivered to its bots yet, oldest first. */
export function pendingEvents(sql: Sql, chat: number, user: number, limit: number): Promise<MemberEvent[]> {
  return sql.query<MemberEvent>(
    `select id, member_id, is_bot, by_id, was, became, extract(epoch from created_at)::bigint as date
       from member_events where chat_id = $1 and user_id = $2 order by id limit $3`,
    [chat, user, limit],
  );
}

export async function removeEvents(sql: Sql, ids: readonly number[]): Promise<void> {
  await sql.query('delete from member_events where id = any($1)', [ids]);
}

/**
 * The people among `people` who share a group with `who`, or a channel that one of the two manages. The query reads
 * the chats of each person, which are bounded, and never the members of a chat, which are not: `offset 0` keeps
 * Postgres from reversing this order.
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

/** Statements on permission to add people to chats, and on invitations. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { type AddPolicy, lockPerson } from '../accounts/users.js';
import { type Database, one, type Sql } from '../sql.js';
import type { MemberRow } from './chats.js';
import { changeMember, loadAcquaintances, type Standing } from './members.js';

const open = `declined_at is null and created_at > now() - interval '1 millisecond' * ${limits.invitation_age_ms_max}`;

/**
 * Counts another add by a stranger. Returns false at the daily limit of adds of this person or by `by`. The caller
 * must have locked the person.
 */
async function countStrangerAdd(sql: Sql, user: number, by: number): Promise<boolean> {
  // Serialises the adds made by one stranger. A transaction with this lock never waits for a lock that is taken
  // before this one.
  await sql.query("select pg_advisory_xact_lock(hashtextextended('stranger_adds', $1))", [by]);
  await sql.query("delete from stranger_adds where user_id = $1 and created_at < now() - interval '1 day'", [
    user,
  ]);
  const rows = await sql.query(
    `insert into stranger_adds (user_id, by_id) select $1, $2
      where (select count(*) from stranger_adds where user_id = $1) < ${limits.stranger_adds_per_day_max}
        and (select count(*) from stranger_adds where by_id = $2 and created_at > now() - interval '1 day')
            < ${limits.strangers_added_per_day_max}
     returning 1`,
    [user, by],
  );
  return rows.length > 0;
}

/**
 * Whether `by` may add a person who is not in the chat now. Error: `user_not_found` for a stranger without a
 * username.
 */
async function mayAdd(
  sql: Sql,
  user: number,
  by: number,
  former: Standing['status'] | undefined,
): Promise<boolean> {
  const { policy, username } = await one<{ policy: AddPolicy; username: string | null }>(
    sql,
    'select add_to_groups as policy, username from users where id = $1',
    [user],
  );
  const known = (await loadAcquaintances(sql, by, [user])).length > 0;
  // Prevents callers from finding out by trying ids which strangers exist.
  if (!known && former === undefined && username === null) fail('user_not_found');
  if (former === 'left' || policy === 'nobody') return false;
  if (known) return true;
  return policy === 'everyone' && (await countStrangerAdd(sql, user, by));
}

/** Invites a person. Errors: `invitation_declined`, `too_many_invitations`. */
async function invite(sql: Sql, chat: number, user: number, by: number): Promise<void> {
  const { total, own } = await one<{ total: number; own: number }>(
    sql,
    `select count(*) as total, count(*) filter (where by_id = $3) as own
       from chat_invitations where user_id = $1 and chat_id <> $2 and ${open}`,
    [user, chat, by],
  );
  if (Number(total) >= limits.invitations_per_user_max || Number(own) >= limits.invitations_per_inviter_max)
    fail('too_many_invitations');
  // An expired invitation is renewed; an open one stays unchanged.
  await sql.query(
    `insert into chat_invitations as i (user_id, chat_id, by_id) values ($1, $2, $3)
     on conflict (user_id, chat_id) do update set by_id = $3, created_at = now() where not (${open.replaceAll(/(declined_at|created_at)/g, 'i.$1')})`,
    [user, chat, by],
  );
}

/**
 * Adds a person to a chat, or changes their status in it. Returns null if `by` may not add the person, who then gets
 * an invitation. Errors: those of `putMember`, `user_not_found`, `invitation_declined`, `too_many_invitations`.
 */
export function addPerson(
  db: Database,
  chat: number,
  user: number,
  became: Standing & { readonly status: 'administrator' | 'member' },
  by: number,
): Promise<MemberRow | null> {
  return db.transaction(async (sql) => {
    await sql.query('select 1 from chats where id = $1 for update', [chat]);
    await lockPerson(sql, user, 'user_not_found');
    const [former] = await sql.query<Standing>(
      'select status, rights from chat_members where chat_id = $1 and member_id = $2',
      [chat, user],
    );
    const present = former && former.status !== 'left' && former.status !== 'kicked';
    if (!present) {
      const declined = await sql.query(
        'select 1 from chat_invitations where user_id = $1 and chat_id = $2 and declined_at is not null',
        [user, chat],
      );
      if (declined.length > 0) fail('invitation_declined');
      if (!(await mayAdd(sql, user, by, former?.status))) {
        await invite(sql, chat, user, by);
        return null;
      }
    }
    return changeMember(sql, chat, { id: user, is_bot: false }, became, by);
  });
}

/** Makes a person a member of the chat that invited them. Errors: `invitation_not_found`, `too_many_chats`. */
export function acceptInvitation(db: Database, chat: number, user: number): Promise<MemberRow> {
  return db.transaction(async (sql) => {
    await sql.query('select 1 from chats where id = $1 for update', [chat]);
    const found = await sql.query(
      `select 1 from chat_invitations where user_id = $1 and chat_id = $2 and ${open} for update`,
      [user, chat],
    );
    if (found.length === 0) fail('invitation_not_found');
    return changeMember(sql, chat, { id: user, is_bot: false }, { status: 'member', rights: {} }, user);
  });
}

/** Declines an open invitation. Error: `invitation_not_found`. */
export function declineInvitation(db: Database, chat: number, user: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    const found = await sql.query(
      `update chat_invitations set declined_at = now() where user_id = $1 and chat_id = $2 and ${open} returning 1`,
      [user, chat],
    );
    if (found.length === 0) fail('invitation_not_found');
    await sql.query(
      `delete from chat_invitations where user_id = $1 and declined_at is not null and id not in (
         select id from chat_invitations where user_id = $1 and declined_at is not null
          order by declined_at desc limit ${limits.declined_invitations_max})`,
      [user],
    );
    return true;
  });
}

export interface InvitationRow {
  readonly id: number;
  readonly chat_id: number;
  readonly type: 'group' | 'channel';
  readonly title: string;
  readonly username: string | null;
  readonly member_count: number;
  readonly by_id: number;
  /** when the person was invited, Unix time in seconds */
  readonly date: number;
}

/** Open invitations of a person with ids below `before`, the latest first. */
export function loadInvitations(
  sql: Sql,
  user: number,
  before: number,
  limit: number,
): Promise<InvitationRow[]> {
  return sql.query<InvitationRow>(
    `select i.id, i.chat_id, c.type, c.title, c.username, c.member_count, i.by_id,
            extract(epoch from i.created_at)::bigint as date
       from (select * from chat_invitations where user_id = $1 and id < $2 and ${open}) i
       join chats c on c.id = i.chat_id order by i.id desc limit $3`,
    [user, before, limit],
  );
}

/** SQL statements that check who may add a person to a chat, and statements for invitations. */
import { fail } from '../../errors.js';
import { type AddPolicy, lockPerson } from '../accounts/users.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, one, type Sql } from '../sql.js';
import type { MemberRow } from './chats.js';
import { isPresent, loadStanding, type Standing } from './events.js';
import { changeMember, loadAcquaintances, lockChat, mayChange } from './members.js';
import { hasBlocked } from './people.js';

const open = `declined_at is null and created_at > now() - interval '1 millisecond' * ${limits.invitation_age_ms_max}`;

/**
 * Records that `by` adds a person who does not know `by`. Returns false if either of the two has reached a daily limit.
 * The caller must have locked the person.
 */
async function countStrangerAdd(sql: Sql, user: number, by: number): Promise<boolean> {
  // Makes other additions by the same person wait. After this lock, a transaction must not take any lock that another
  // transaction takes before this one. Otherwise, the two transactions could deadlock.
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
 * Returns whether `by` may add a person who is not in the chat. Errors: `user_not_found` for a stranger without a
 * username, `cant_add_person` if the person has blocked `by`.
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
  // Answers as if nobody had this id. Otherwise callers could try ids to find out which people exist.
  if (!known && former === undefined && username === null) fail('user_not_found');
  if (await hasBlocked(sql, user, by)) fail('cant_add_person');
  if (former === 'left' || policy === 'nobody') return false;
  if (known) return true;
  return policy === 'everyone' && (await countStrangerAdd(sql, user, by));
}

/** Stores an invitation. Errors: `invitation_declined`, `too_many_invitations`. */
async function invite(sql: Sql, chat: number, user: number, by: number): Promise<void> {
  const { total, own } = await one<{ total: number; own: number }>(
    sql,
    `select count(*) as total, count(*) filter (where by_id = $3) as own
       from chat_invitations where user_id = $1 and chat_id <> $2 and ${open}`,
    [user, chat, by],
  );
  if (Number(total) >= limits.invitations_per_user_max || Number(own) >= limits.invitations_per_inviter_max)
    fail('too_many_invitations');
  // Renews an expired invitation, but leaves an open one unchanged.
  await sql.query(
    `insert into chat_invitations as i (user_id, chat_id, by_id) values ($1, $2, $3)
     on conflict (user_id, chat_id) do update set by_id = $3, created_at = now() where not (${open.replaceAll(/(declined_at|created_at)/g, 'i.$1')})`,
    [user, chat, by],
  );
}

/**
 * Adds a person to a chat, or changes the status of a person who is in it. If `by` may not add the person, invites the
 * person instead and returns null. Errors: `user_not_found`, `cant_add_person`, `person_banned`, `invitation_declined`,
 * `too_many_invitations`, and those of `putMember`.
 */
export function addPerson(
  db: Database,
  chat: number,
  user: number,
  became: Standing & { readonly status: 'administrator' | 'member' },
  by: number,
): Promise<MemberRow | null> {
  return db.transaction(async (sql) => {
    const locked = await lockChat(sql, chat);
    await lockPerson(sql, user, 'user_not_found');
    const former = await loadStanding(sql, chat, user);
    await mayChange(sql, chat, locked, former, became.status, by);
    if (!former || !isPresent(former.status)) {
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
    const promoted_by = became.status === 'administrator' ? by : null;
    return changeMember(sql, chat, { id: user, is_bot: false }, { ...became, promoted_by }, by);
  });
}

/** Makes an invited person a member of the chat. Errors: `invitation_not_found`, `too_many_chats`. */
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

/** Declines an invitation. Error: `invitation_not_found`. */
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
  /** The Unix time in seconds at which the invitation was sent. */
  readonly date: number;
}

export function loadInvitations(
  sql: Sql,
  user: number,
  before: number,
  limit: number,
): Promise<InvitationRow[]> {
  return sql.query<InvitationRow>(
    `select i.id, i.chat_id, c.type, c.title, c.username, c.member_count, i.by_id,
            floor(extract(epoch from i.created_at))::bigint as date
       from (select * from chat_invitations where user_id = $1 and id < $2 and ${open}) i
       join chats c on c.id = i.chat_id order by i.id desc limit $3`,
    [user, before, limit],
  );
}

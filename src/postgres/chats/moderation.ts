/** SQL statements with which a chat's administrators ban, restrict and promote its members. */
import { type ErrorName, fail } from '../../errors.js';
import { hasRight, rightNames } from '../../rules/rights.js';
import { type Database, noteStale, type Sql } from '../sql.js';
import { isPresent, loadStanding, outside, type Standing, type Who } from './events.js';
import { changeMember, removeInvitation } from './members.js';

interface Change {
  readonly chat: number;
  readonly by: Who;
  readonly member: Who;
}

/** Fails if the member is the creator, or an administrator whom the acting member (`by`) did not promote. */
function mustBeBelow(was: Standing, by: Who, refusal: ErrorName): void {
  if (was.status === 'creator') fail('cant_remove_owner');
  if (was.status === 'administrator' && was.promoted_by !== by.id) fail(refusal);
}

/**
 * Changes a member under the chat's lock to the status and rights that `decide` returns. `decide` gets the member's
 * present status and rights, or null for somebody who was never a member. If `decide` returns null, the member stays
 * unchanged. Fails if `by` lacks the right. Returns whether the member was changed.
 */
function moderate(
  db: Database,
  { chat, by, member }: Change,
  right: 'can_restrict_members' | 'can_promote_members',
  refusal: ErrorName,
  decide: (sql: Sql, was: Standing | null, own: Standing) => Promise<Standing | null>,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    await sql.query('select 1 from chats where id = $1 for update', [chat]);
    const own = (await loadStanding(sql, chat, by.id)) ?? outside;
    if (!hasRight(own, right)) fail(refusal);
    const became = await decide(sql, await loadStanding(sql, chat, member.id), own);
    if (became === null) return false;
    await changeMember(sql, chat, member, became as Parameters<typeof changeMember>[3], by.id, {
      exact: true,
    });
    return true;
  });
}

/** Bans a member until `until_date` (Unix time), or forever if this date is null. */
export const ban = (db: Database, change: Change, until_date: number | null): Promise<boolean> =>
  moderate(db, change, 'can_restrict_members', 'cant_restrict', async (sql, was) => {
    if (change.member.id === change.by.id) fail('cant_restrict_self');
    if (was) mustBeBelow(was, change.by, 'member_is_administrator');
    if (was?.status === 'kicked' && (was.until_date ?? null) === until_date) {
      // Removes an invitation that the person got after the ban.
      await removeInvitation(sql, change.chat, change.member.id);
      return null;
    }
    return { status: 'kicked', rights: {}, until_date };
  });

/**
 * Ends a ban. With `onlyIfBanned`, does not change a current member. Without it, removes a current member from the
 * chat.
 */
export const unban = (db: Database, change: Change, onlyIfBanned: boolean): Promise<boolean> =>
  moderate(db, change, 'can_restrict_members', 'cant_restrict', async (_, was) => {
    if (change.member.id === change.by.id) fail('cant_restrict_self');
    if (was === null || (onlyIfBanned && was.status !== 'kicked')) return null;
    mustBeBelow(was, change.by, 'member_is_administrator');
    return was.status === 'left' && Object.keys(was.rights).length === 0 ? null : outside;
  });

/** Restricts a member of a group, or a person who left it. If `rights` is null, lifts all restrictions. */
export const restrict = (
  db: Database,
  change: Change,
  rights: Readonly<Record<string, boolean>> | null,
  until_date: number | null,
): Promise<boolean> =>
  moderate(db, change, 'can_restrict_members', 'cant_restrict', async (_, was) => {
    if (change.member.id === change.by.id) fail('cant_restrict_self');
    if (was === null) return fail('chat_member_not_found');
    mustBeBelow(was, change.by, 'member_is_administrator');
    const inside = isPresent(was.status);
    if (rights === null) return inside ? { status: 'member', rights: {} } : outside;
    return { status: inside ? 'restricted' : 'left', rights, until_date };
  });

/**
 * Makes a member an administrator with exactly these rights. If the rights are null, makes the member an ordinary
 * member again.
 */
export const promote = (
  db: Database,
  change: Change,
  rights: Readonly<Record<string, boolean>> | null,
): Promise<boolean> =>
  moderate(db, change, 'can_promote_members', 'not_enough_rights', async (_, was, own) => {
    if (change.member.id === change.by.id) fail('cant_promote_self');
    if (was === null || !isPresent(was.status)) return fail('not_participant');
    mustBeBelow(was, change.by, 'not_enough_rights');
    if (rights === null) return was.status === 'administrator' ? { status: 'member', rights: {} } : null;
    if (rightNames.some((name) => rights[name] && !hasRight(own, name))) fail('right_forbidden');
    return {
      ...{ status: 'administrator', rights, promoted_by: change.by.id },
      custom_title: was.custom_title ?? null,
    };
  });

export const setCustomTitle = (db: Database, change: Change, title: string): Promise<boolean> =>
  moderate(db, change, 'can_promote_members', 'cant_change_title', async (_, was) => {
    if (was?.status === 'creator') fail('only_creator_title');
    if (was?.status !== 'administrator') return fail('member_not_administrator');
    if (was.promoted_by !== change.by.id) fail('cant_change_title');
    return { ...was, custom_title: title || null };
  });

/** Sets permissions in their stored form. Errors: `chat_not_found`, `permissions_not_allowed`. */
export function setPermissions(db: Database, chat: number, by: Who, permissions: string): Promise<boolean> {
  return db.transaction(async (sql) => {
    const [found] = await sql.query<{ permissions: string }>(
      'select permissions from chats where id = $1 for update',
      [chat],
    );
    if (!found) return fail('chat_not_found');
    const own = (await loadStanding(sql, chat, by.id)) ?? outside;
    if (!hasRight(own, 'can_restrict_members')) fail('permissions_not_allowed');
    if (found.permissions === permissions) return false;
    await sql.query(
      "update chats set permissions = $2, version = nextval('control_versions') where id = $1",
      [chat, permissions],
    );
    await noteStale(sql, [
      ['chat', chat],
      ['details', chat],
    ]);
    return true;
  });
}

/** SQL statements for chats between two people, and for blocked people (decision 0083). */
import { fail } from '../../errors.js';
import { type AddPolicy, lockPerson } from '../accounts/users.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, noteStale, type Sql, seconds } from '../sql.js';
import { joinList } from './chats.js';

/** Loads the chat of two people, or null if it was never opened. */
export const loadPersonChat = async (sql: Sql, user: number, other: number): Promise<number | null> =>
  (await sql.firstValue<number>`
    select chat_id from person_chats
    where least(opener_id, peer_id) = least(${user}::bigint, ${other}::bigint)
      and greatest(opener_id, peer_id) = greatest(${user}::bigint, ${other}::bigint)`) ?? null;

export const hasBlocked = (sql: Sql, user: number, other: number): Promise<boolean> => sql.some`
  select 1 from person_blocks where user_id = ${user} and blocked_id = ${other}`;

/**
 * Fails with `too_many_requests`. The limit counts the chats of the last 24 hours, so the caller can retry when the
 * oldest of these chats is a day old.
 */
function waitForDay(oldest: number, now: number): never {
  return fail('too_many_requests', { retry_after: Math.max(1, oldest + 24 * 3_600 - now) });
}

/**
 * Checks the daily limits for chats between strangers, and the number of chats that other people have opened with the
 * peer. The caller must have locked both people. Errors: `too_many_requests`, `cant_write_to_person`.
 */
async function checkBounds(sql: Sql, opener: number, peer: number, isStranger: boolean): Promise<void> {
  const received = await sql.value<number>`select count(*) from person_chats where peer_id = ${peer}`;
  if (received >= limits.chats_opened_by_others_max) fail('cant_write_to_person');
  if (!isStranger) return;
  const today = await sql.one<{ by: number; first: number; to: number; to_first: number; now: number }>`
    select count(*) filter (where opener_id = ${opener}) as by,
      coalesce(min(${seconds('created_at')}) filter (where opener_id = ${opener}), 0) as first,
      count(*) filter (where peer_id = ${peer}) as to,
      coalesce(min(${seconds('created_at')}) filter (where peer_id = ${peer}), 0) as to_first,
      ${seconds('now()')} as now
    from person_chats
    where (opener_id = ${opener} or peer_id = ${peer}) and is_stranger and created_at > now() - interval '1 day'`;
  if (today.by >= limits.stranger_chats_opened_per_day_max) waitForDay(today.first, today.now);
  if (today.to >= limits.stranger_chats_received_per_day_max) waitForDay(today.to_first, today.now);
}

/**
 * Fails if `opener` may not open a chat with `peer`. Errors: `person_blocked_by_you`, `cant_write_to_person`,
 * `too_many_requests`.
 */
async function assertMayOpen(sql: Sql, opener: number, peer: number, isStranger: boolean): Promise<void> {
  if (await hasBlocked(sql, opener, peer)) fail('person_blocked_by_you');
  const policy = await sql.value<AddPolicy>`select start_chats from users where id = ${peer}`;
  const isRefused = policy === 'nobody' || (policy === 'shared_chats' && isStranger);
  if (isRefused || (await hasBlocked(sql, peer, opener))) fail('cant_write_to_person');
  await checkBounds(sql, opener, peer, isStranger);
}

export interface OpenedChat {
  readonly id: number;
  readonly isNew: boolean;
}

/**
 * Opens the chat of two people, or returns the chat that is already open. `isStranger` says that the two people share
 * no chat. Errors: `user_not_found`, `person_blocked_by_you`, `cant_write_to_person`, `too_many_requests`,
 * `too_many_chats`.
 */
export async function openPersonChat(
  db: Database,
  opener: number,
  peer: number,
  isStranger: boolean,
  incarnationOf: (id: number) => Promise<number>,
): Promise<OpenedChat> {
  const made = await db.value<number>`select -nextval('ids') as id`;
  const incarnation = await incarnationOf(made);
  return db.transaction(async (sql) => {
    // Locks the person with the smaller id first, so that two people who open their chat at the same moment cannot
    // deadlock.
    for (const id of [Math.min(opener, peer), Math.max(opener, peer)])
      await lockPerson(sql, id, id === opener ? 'unauthorized' : 'user_not_found');
    const open = await loadPersonChat(sql, opener, peer);
    if (open !== null) return { id: open, isNew: false };
    await assertMayOpen(sql, opener, peer, isStranger);
    await sql.run`
      insert into chats (incarnation, id, type, title, creator_id, private, member_count)
      values (${incarnation}, ${made}, 'person', '', ${opener}, true, 2)`;
    await sql.run`
      insert into person_chats (chat_id, opener_id, peer_id, is_stranger)
      values (${made}, ${opener}, ${peer}, ${isStranger})`;
    await sql.run`
      insert into chat_members (chat_id, member_id, is_bot, status)
      values (${made}, ${opener}, false, 'member'), (${made}, ${peer}, false, 'member')`;
    await joinList(sql, opener);
    await sql.run`update users set chats_version = nextval('control_versions') where id = ${peer}`;
    await noteStale(sql, [
      ['chat', made],
      ...[opener, peer].flatMap((id) => [['member', made, id] as const, ['chats', id] as const]),
    ]);
    return { id: made, isNew: true };
  });
}

/**
 * Blocks or unblocks a person. Returns the id of the chat of the two people, or null if they have none. Returns the id
 * even if nothing changes, because the chat's copy in Redis may not have been refreshed after an earlier change.
 * Errors: `unauthorized`, `user_not_found`, `too_many_blocked_people`.
 */
export function setPersonBlocked(
  db: Database,
  user: number,
  other: number,
  blocked: boolean,
): Promise<number | null> {
  return db.transaction(async (sql) => {
    await lockPerson(sql, user);
    if ((await hasBlocked(sql, user, other)) === blocked) return loadPersonChat(sql, user, other);
    if (blocked) {
      const count = await sql.value<number>`select count(*) from person_blocks where user_id = ${user}`;
      if (count >= limits.blocked_people_max) fail('too_many_blocked_people');
      const added = await sql.some`
        insert into person_blocks (user_id, blocked_id)
        select ${user}, id from users where id = ${other} and deleted_at is null returning 1`;
      if (!added) fail('user_not_found');
    } else await sql.run`delete from person_blocks where user_id = ${user} and blocked_id = ${other}`;
    const chat = await loadPersonChat(sql, user, other);
    if (chat === null) return null;
    await sql.run`update chats set version = nextval('control_versions') where id = ${chat}`;
    await noteStale(sql, [['chat', chat]]);
    return chat;
  });
}

export interface BlockRow {
  readonly id: number;
  readonly blocked_id: number;
  /** The Unix time in seconds at which the person was blocked. */
  readonly date: number;
}

/** Loads blocks with ids below `before`, newest first. */
export const loadBlocked = (sql: Sql, user: number, before: number, limit: number) => sql.rows<BlockRow>`
  select id, blocked_id, ${seconds('created_at')} as date from person_blocks
  where user_id = ${user} and id < ${before} order by id desc limit ${limit}`;

/** Closes the chats of a person whose account ends, and returns their ids. */
export const closePersonChats = (sql: Sql, user: number) => sql.column<number>`
  update chats set version = nextval('control_versions')
  where id in (select chat_id from person_chats where opener_id = ${user} or peer_id = ${user}) returning id`;

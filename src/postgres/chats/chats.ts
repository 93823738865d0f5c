/** SQL statements for chats, and for the members and messages of chats. */
import { fail } from '../../errors.js';
import { lockPerson, type NamesRow, takeName } from '../accounts/users.js';
import { loadWriteAccess } from '../bots/write_access.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, noteStale, one, type Sql } from '../sql.js';
import { noteService, type Standing, standingColumns } from './events.js';

export type { MemberStatus } from './events.js';

export interface ChatRow {
  readonly id: number;
  readonly type: 'group' | 'channel' | 'person';
  readonly title: string;
  readonly username: string | null;
  readonly private: boolean;
  readonly member_count: number;
  /** The permissions that differ from the defaults, separated by commas. */
  readonly permissions: string;
  readonly incarnation: number;
  readonly version: number;
  readonly bots: readonly number[];
  /** The two people of a chat of type `person`. Null if the chat is a group or a channel. */
  readonly opener_id: number | null;
  readonly peer_id: number | null;
  /** Whether one of the two people has blocked the other. */
  readonly blocked: boolean;
  /** The ids of the deleted accounts among the chat's two people. */
  readonly gone: readonly number[];
}

export interface MemberRow extends Standing {
  readonly member_id: number;
  readonly is_bot: boolean;
  readonly version: number;
}

export interface SequenceRow {
  readonly last_message_id: number;
  readonly version: number;
  readonly incarnation: number;
}

export const present = "status in ('creator', 'administrator', 'member', 'restricted')";

export const memberColumns = `member_id, is_bot, ${standingColumns}, version`;

/**
 * Loads the incarnation of a partition. The message ids of a new chat start at this incarnation. If the incarnation is
 * raised before the chat's first message, the chat skips some ids. Skipped ids do no harm.
 */
export async function loadIncarnation(sql: Sql, partition: number): Promise<number> {
  const [row] = await sql.query<{ incarnation: number }>(
    'select incarnation from partitions where partition = $1',
    [partition],
  );
  return row?.incarnation ?? 0;
}

/**
 * Raises the version of a person's chat list, and fails if the person has too many chats. Call this after adding or
 * removing a chat. Chats that other people opened with the person do not count. Error: `too_many_chats`.
 */
export async function joinList(sql: Sql, user: number): Promise<void> {
  const { count } = await one<{ count: number }>(
    sql,
    `select (select count(*) from direct_chats where user_id = $1) +
            (select count(*) from chat_members where member_id = $1 and ${present}) -
            (select count(*) from person_chats where peer_id = $1) as count`,
    [user],
  );
  if (Number(count) > limits.chats_per_user_max) fail('too_many_chats');
  await sql.query("update users set chats_version = nextval('control_versions') where id = $1", [user]);
}

/**
 * Opens the direct chat of a bot and a user. Returns false if the chat was already open. Errors: `bot_not_found`,
 * `cant_write_to_bot`, `too_many_chats`.
 */
export function openDirectChat(
  db: Database,
  bot: number,
  user: number,
  incarnation: number,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    const access = await loadWriteAccess(sql, bot, user);
    if (access === null) fail('bot_not_found');
    if (!access.may) fail('cant_write_to_bot');
    await lockPerson(sql, user);
    const rows = await sql.query(
      `insert into direct_chats (incarnation, bot_id, user_id) values ($1, $2, $3)
       on conflict do nothing returning bot_id`,
      [incarnation, bot, user],
    );
    if (rows.length === 0) return false;
    await joinList(sql, user);
    await noteStale(sql, [
      ['chat', bot, user],
      ['chats', user],
    ]);
    return true;
  });
}

export interface DirectChatRow {
  readonly incarnation: number;
  /** Whether the user has blocked the bot. */
  readonly blocked: boolean;
  readonly version: number;
  /** The user's names and ids at the time of this version of the chat. Null if the account was deleted. */
  readonly person: NamesRow | null;
}

export async function loadDirectChat(sql: Sql, bot: number, user: number): Promise<DirectChatRow | null> {
  const [row] = await sql.query<DirectChatRow>(
    `select d.incarnation, d.blocked, d.version,
            (select to_jsonb(n) from (select u.id, u.external_id, u.username, u.first_name, u.last_name, u.language_code
               from users u where u.id = d.user_id and u.deleted_at is null) n) as person
       from direct_chats d where d.bot_id = $1 and d.user_id = $2`,
    [bot, user],
  );
  return row ?? null;
}

export interface NewChat {
  readonly type: 'group' | 'channel';
  readonly title: string;
  readonly creator: number;
  /** The username of a public chat. Absent if the chat is private. */
  readonly username?: string | undefined;
  readonly private: boolean;
}

/**
 * Creates a group or channel with `creator` as its first member. `incarnationOf` returns the current incarnation of the
 * partition that contains the new chat. Errors: `username_taken`, `too_many_chats`.
 */
export async function createChat(
  db: Database,
  chat: NewChat,
  incarnationOf: (id: number) => Promise<number>,
): Promise<number> {
  const { id } = await one<{ id: number }>(db, "select -nextval('ids') as id");
  const incarnation = await incarnationOf(id);
  return db.transaction(async (sql) => {
    await lockPerson(sql, chat.creator);
    if (chat.username !== undefined) await takeName(sql, chat.username, id);
    await sql.query(
      `insert into chats (incarnation, id, type, title, creator_id, username, private)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [incarnation, id, chat.type, chat.title, chat.creator, chat.username ?? null, chat.private],
    );
    await sql.query(
      "insert into chat_members (chat_id, member_id, is_bot, status) values ($1, $2, false, 'creator')",
      [id, chat.creator],
    );
    await joinList(sql, chat.creator);
    if (chat.type === 'group')
      await noteService(sql, id, { id: chat.creator, is_bot: false }, { group_chat_created: true });
    await noteStale(sql, [
      ['chat', id],
      ['member', id, chat.creator],
      ['chats', chat.creator],
      ...(chat.username === undefined ? [] : ([['name', id]] as const)),
    ]);
    return id;
  });
}

export async function loadChat(sql: Sql, id: number): Promise<ChatRow | null> {
  const [row] = await sql.query<ChatRow>(
    `select c.id, c.type, c.title, c.username, c.private, c.member_count, c.permissions, c.incarnation, c.version,
            coalesce((select array_agg(m.member_id order by m.member_id) from chat_members m
                       where m.chat_id = c.id and m.is_bot and m.${present}), '{}') as bots, p.opener_id, p.peer_id,
            exists (select from person_blocks b
                     where (b.user_id = p.opener_id and b.blocked_id = p.peer_id)
                        or (b.user_id = p.peer_id and b.blocked_id = p.opener_id)) as blocked,
            array(select u.id from users u
                   where u.id in (p.opener_id, p.peer_id) and u.deleted_at is not null) as gone
       from chats c left join person_chats p on p.chat_id = c.id where c.id = $1`,
    [id],
  );
  return row ?? null;
}

export async function loadMember(sql: Sql, chat: number, member: number): Promise<MemberRow | null> {
  const [row] = await sql.query<MemberRow>(
    `select ${memberColumns} from chat_members where chat_id = $1 and member_id = $2`,
    [chat, member],
  );
  return row ?? null;
}

export function loadMembers(sql: Sql, chat: number, after: number, limit: number): Promise<MemberRow[]> {
  return sql.query<MemberRow>(
    `select ${memberColumns} from chat_members
      where chat_id = $1 and member_id > $2 and ${present} order by member_id limit $3`,
    [chat, after, limit],
  );
}

export interface UserChatsRow {
  readonly direct: readonly number[];
  readonly shared: readonly number[];
  readonly version: number;
}

export async function loadUserChats(sql: Sql, user: number): Promise<UserChatsRow | null> {
  const [row] = await sql.query<UserChatsRow>(
    `select coalesce((select array_agg(bot_id order by created_at) from direct_chats where user_id = u.id), '{}') as direct,
            coalesce((select array_agg(chat_id) from chat_members where member_id = u.id and ${present}), '{}') as shared,
            u.chats_version as version
       from users u where u.id = $1 and u.deleted_at is null`,
    [user],
  );
  return row ?? null;
}

export async function loadJoined(
  sql: Sql,
  user: number,
  chats: ReadonlyArray<{ readonly id: number; readonly user: number }>,
): Promise<ReadonlyMap<number, number>> {
  const rows = await sql.query<{ chat_id: number; date: number }>(
    `select chat_id, floor(extract(epoch from joined_at))::bigint as date from (
       select m.chat_id, coalesce(m.joined_at, c.created_at) as joined_at
         from chat_members m join chats c on c.id = m.chat_id where m.member_id = $1 and m.chat_id = any($2)
       union all
       select bot_id, created_at from direct_chats where user_id = $1 and bot_id = any($2)) j`,
    [user, chats.map(({ id }) => id)],
  );
  return new Map(rows.map(({ chat_id, date }) => [chat_id, date]));
}

export async function loadSequence(sql: Sql, chat: number, user: number): Promise<SequenceRow | null> {
  const [row] = await sql.query<SequenceRow>(
    'select last_message_id, version, incarnation from chat_sequences where chat_id = $1 and user_id = $2',
    [chat, user],
  );
  return row ?? null;
}

/** Loads the record of a chat's pinned message. The record is null after the message was unpinned. */
export async function loadPin(
  sql: Sql,
  chat: number,
  user: number,
): Promise<{ readonly version: number; readonly record: Buffer | null } | null> {
  const [row] = await sql.query<{ version: number; record: Buffer | null }>(
    'select version, record from chat_pins where chat_id = $1 and user_id = $2',
    [chat, user],
  );
  return row ?? null;
}

export interface MessageRow {
  readonly message_id: number;
  readonly version: number;
  /** The encoded message. Null if the message was deleted. */
  readonly record: Buffer | null;
}

/**
 * The SQL condition for a list of message ids. The query searches the index of each day's partition, because an id does
 * not tell on which day its message was sent. The subquery hides the number of ids from the planner, so that Postgres
 * uses one plan for all calls.
 */
const anyId = 'any(array(select unnest($3::bigint[])))';

export function loadMessages(
  sql: Sql,
  chat: number,
  user: number,
  ids: readonly number[],
): Promise<MessageRow[]> {
  return sql.query<MessageRow>(
    `select message_id, version, record from messages where chat_id = $1 and user_id = $2 and message_id = ${anyId}`,
    [chat, user, ids],
  );
}

/** Returns the newest of these messages. Stops after the message with which the total size reaches `bytes`. */
export function loadNewestMessages(
  sql: Sql,
  chat: number,
  user: number,
  ids: readonly number[],
  bytes: number,
): Promise<MessageRow[]> {
  return sql.query<MessageRow>(
    `select message_id, version, record from (
       select message_id, version, record, octet_length(record) as size,
              sum(octet_length(record)) over (order by message_id desc) as total
         from messages where chat_id = $1 and user_id = $2 and message_id = ${anyId}) m
      where total is null or total - coalesce(size, 0) < $4`,
    [chat, user, ids, bytes],
  );
}

/** Returns the id of the newest message below `before` that is not deleted, or 0 if there is none. */
export async function newestMessage(sql: Sql, chat: number, user: number, before: number): Promise<number> {
  const [row] = await sql.query<{ message_id: number }>(
    `select message_id from messages
      where chat_id = $1 and user_id = $2 and message_id < $3 and record is not null
      order by message_id desc limit 1`,
    [chat, user, before],
  );
  return row?.message_id ?? 0;
}

const head = `substring(record from 1 for ${limits.message_head_bytes_max})`;

export async function loadHeads(
  sql: Sql,
  chat: number,
  user: number,
  ids: readonly number[],
): Promise<Buffer[]> {
  const rows = await sql.query<{ head: Buffer }>(
    `select ${head} as head from messages
      where chat_id = $1 and user_id = $2 and message_id = ${anyId} and record is not null`,
    [chat, user, ids],
  );
  return rows.map((row) => row.head);
}

export interface NewestHead {
  readonly chat_id: number;
  readonly user_id: number;
  /** The last message id that was assigned. Null if the chat has had no message. */
  readonly last_message_id: number | null;
  /** The first bytes of the newest message that is not deleted. Null if the chat has no such message. */
  readonly head: Buffer | null;
}

/**
 * How many days back the search for a chat's newest message goes: first a few days, then a month, and finally all days.
 */
const searched_days = [2, 30, undefined] as const;

/**
 * Loads the newest message of each chat. Searches recent days first, because nearly all chats that people open have a
 * recent message, and searching all partitions for each chat would take long. Returns one row per chat, in any order.
 */
export async function loadNewestHeads(
  sql: Sql,
  chats: ReadonlyArray<{ readonly id: number; readonly user: number }>,
): Promise<NewestHead[]> {
  const found: NewestHead[] = [];
  let left = chats;
  for (const days of searched_days) {
    const recent = days === undefined ? '' : `and m.day >= (now() at time zone 'UTC')::date - ${days}`;
    const rows = await sql.query<NewestHead>(
      `select c.chat_id, c.user_id, s.last_message_id, m.head
         from unnest($1::bigint[], $2::bigint[]) as c (chat_id, user_id)
              left join chat_sequences s using (chat_id, user_id)
              left join lateral (select ${head} as head from messages m
                        where m.chat_id = c.chat_id and m.user_id = c.user_id and m.record is not null ${recent}
                        order by m.message_id desc limit 1) m on true`,
      [left.map(({ id }) => id), left.map(({ user }) => user)],
    );
    const mayBeOlder = (row: NewestHead) =>
      days !== undefined && row.head === null && row.last_message_id !== null;
    found.push(...rows.filter((row) => !mayBeOlder(row)));
    left = rows.filter(mayBeOlder).map((row) => ({ id: row.chat_id, user: row.user_id }));
    if (left.length === 0) break;
  }
  return found;
}

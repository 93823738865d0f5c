/** SQL statements for people and their tokens. */
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import {
  forgetUnused,
  keysOf,
  noteUnused,
  type PictureChange,
  type StoredPicture,
} from '../bots/pictures.js';
import { type Database, noteStale, type Sql, seconds } from '../sql.js';

export type AddPolicy = 'everyone' | 'shared_chats' | 'nobody';

export interface NamesRow {
  readonly id: number;
  readonly external_id: string;
  readonly username: string | null;
  readonly first_name: string;
  readonly last_name: string | null;
  readonly language_code: string | null;
}

export interface UserRow extends NamesRow {
  readonly version: number;
  /** The lookup values of the person's tokens, in base64. */
  readonly tokens: readonly string[];
  readonly suspended: boolean;
  readonly add_to_groups: AddPolicy;
  /** Who may start a chat with the person. */
  readonly start_chats: AddPolicy;
  /** The sizes of the avatar, largest first. */
  readonly avatar: readonly StoredPicture[] | null;
}

export interface NewUser {
  readonly username?: string | undefined;
  readonly first_name: string;
  readonly last_name?: string | undefined;
  readonly language_code?: string | undefined;
}

/** Takes a username. People, bots and public chats share one namespace. Error: `username_taken`. */
export async function takeName(sql: Sql, name: string, owner: number): Promise<void> {
  const taken = await sql.some`
    insert into names as n (name, owner) values (${name.toLowerCase()}, ${owner})
    on conflict (name) do update set owner = excluded.owner, free_at = null where n.free_at <= now()
    returning name`;
  if (!taken) fail('username_taken');
}

/** Inserts a person inside the caller's transaction. Error: `username_taken`. */
export async function insertUser(sql: Sql, user: NewUser): Promise<number> {
  const id = await sql.value<number>`select nextval('ids') as id`;
  if (user.username !== undefined) await takeName(sql, user.username, id);
  await sql.run`
    insert into users (id, username, first_name, last_name, language_code)
    values (${id}, ${user.username ?? null}, ${user.first_name}, ${user.last_name ?? null},
      ${user.language_code ?? null})`;
  return id;
}

/**
 * Creates a person with a first token. If `agent` is not null, this token is a session. `lookupFor` computes the
 * token's lookup value from the new person's id. `also` runs in the same transaction.
 */
export function createUser(
  db: Database,
  user: NewUser,
  lookupFor: (id: number) => Buffer,
  agent: string | null = null,
  also: (sql: Sql, id: number) => Promise<unknown> = async () => {},
): Promise<number> {
  return db.transaction(async (sql) => {
    const id = await insertUser(sql, user);
    await also(sql, id);
    await sql.run`insert into user_tokens (user_id, hmac, agent) values (${id}, ${lookupFor(id)}, ${agent})`;
    await noteStale(sql, [['user', id]]);
    return id;
  });
}

export interface UserTokenRow {
  readonly id: number;
  /** '' if the token was issued without a name. */
  readonly name: string;
  /** The Unix time in seconds at which the token was created. */
  readonly created_at: number;
  /** The day of the token's last use as YYYY-MM-DD in UTC, or null if the token was never used. */
  readonly last_used_on: string | null;
}

/**
 * A new token. `lookup` is the digest (base64) under which the token is stored. The token itself is shown only to the
 * person who creates it.
 */
export interface MadeUserToken {
  readonly id: number;
  readonly lookup: string;
}

/**
 * Adds a token for a person. Two tokens of one person cannot have the same name. Returns null if there is no such
 * person. Errors: `too_many_tokens`, `token_name_taken`.
 */
export function addUserToken(
  db: Database,
  user: number,
  name: string,
  lookup: Buffer,
): Promise<MadeUserToken | null> {
  return db.transaction(async (sql) => {
    // `raiseVersion` locks the person, so that concurrent calls for the same person wait for each other.
    if (!(await raiseVersion(sql, user))) return null;
    const { count, taken } = await sql.one<{ count: number; taken: boolean }>`
      select count(*) as count, coalesce(bool_or(name = ${name} and ${name} <> ''), false) as taken
      from user_tokens where user_id = ${user} and agent is null`;
    if (count >= limits.user_tokens_max) fail('too_many_tokens');
    if (taken) fail('token_name_taken');
    const id = await sql.value<number>`
      insert into user_tokens (user_id, hmac, name) values (${user}, ${lookup}, ${name}) returning id`;
    await noteStale(sql, [['user', user]]);
    return { id, lookup: lookup.toString('base64') };
  });
}

/**
 * Replaces the secret of a token. Call this only while nobody has seen the former secret. Returns false if the token no
 * longer exists.
 */
export function replaceUserToken(db: Database, user: number, id: number, lookup: Buffer): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, user))) return false;
    const changed = await sql.some`
      update user_tokens set hmac = ${lookup} where user_id = ${user} and id = ${id} returning id`;
    await noteStale(sql, [['user', user]]);
    return changed;
  });
}

export const loadUserTokens = (
  sql: Sql,
  user: number,
  after: number,
  limit: number,
) => sql.rows<UserTokenRow>`
  select id, name, ${seconds('created_at')} as created_at, last_used_on::text as last_used_on
  from user_tokens where user_id = ${user} and agent is null and id > ${after} order by id limit ${limit}`;

/** Removes a token by id or name. Returns false if there is no such token. */
export function removeUserToken(
  db: Database,
  user: number,
  which: { readonly id: number } | { readonly name: string },
): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, user))) return false;
    const removed = await ('id' in which
      ? sql.some`delete from user_tokens where user_id = ${user} and id = ${which.id} returning id`
      : sql.some`
        delete from user_tokens where user_id = ${user} and name = ${which.name} and name <> ''
        returning id`);
    if (removed) await noteStale(sql, [['user', user]]);
    return removed;
  });
}

export const noteTokensUsed = (sql: Sql, lookups: readonly Buffer[]) => sql.run`
  update user_tokens set last_used_on = (now() at time zone 'utc')::date
  where hmac = any(${lookups}::bytea[]) and last_used_on is distinct from (now() at time zone 'utc')::date`;

/** The fields to change. Absent fields stay the same. */
export interface UserChange {
  readonly language_code?: string | undefined;
  readonly add_to_groups?: AddPolicy | undefined;
  readonly start_chats?: AddPolicy | undefined;
  readonly first_name?: string | undefined;
  /** An empty text removes the last name. */
  readonly last_name?: string | undefined;
}

/** A person's chat with another person, and the id of that person. */
export interface ChatWithPerson {
  readonly chat: number;
  readonly other: number;
}

/** The chats whose copies in Redis contain a person's name. */
export interface ChatsWithName {
  /** The bots that have a direct chat with the person. The newest chat comes first. */
  readonly direct: readonly number[];
  readonly people: readonly ChatWithPerson[];
}

/**
 * Raises the versions of the chats whose copies in Redis contain a person's name. Locks the chats in the order of their
 * ids, so that two people who change their names at the same moment cannot deadlock.
 */
async function raiseChatVersions(sql: Sql, user: number): Promise<ChatsWithName> {
  const direct = await sql.column<number>`
    with own as (select bot_id from direct_chats where user_id = ${user} order by bot_id for no key update),
      raised as (update direct_chats d set version = nextval('control_versions') from own
        where d.bot_id = own.bot_id and d.user_id = ${user} returning d.bot_id, d.created_at)
    select bot_id from raised order by created_at desc`;
  const people = await sql.rows<ChatWithPerson>`
    with own as (select c.id from chats c join person_chats p on p.chat_id = c.id
        where p.opener_id = ${user} or p.peer_id = ${user} order by c.id for no key update of c),
      raised as (update chats c set version = nextval('control_versions') from own where c.id = own.id
        returning c.id)
    select r.id as chat, case when p.opener_id = ${user} then p.peer_id else p.opener_id end as other
    from raised r join person_chats p on p.chat_id = r.id order by r.id`;
  return { direct, people };
}

/**
 * Changes a person. If the name changes, returns the chats whose copies must be refreshed. If the name stays the same,
 * returns no chats. Returns null if there is no such person.
 */
export function changeUser(db: Database, id: number, change: UserChange): Promise<ChatsWithName | null> {
  const { first_name = null, last_name = null } = change;
  return db.transaction(async (sql) => {
    const before = await sql.first<Pick<NamesRow, 'first_name' | 'last_name'>>`
      select first_name, last_name from users where id = ${id} and deleted_at is null for no key update`;
    if (before === null) return null;
    await sql.run`
      update users set language_code = coalesce(${change.language_code ?? null}, language_code),
        first_name = coalesce(${first_name}, first_name),
        last_name = nullif(coalesce(${last_name}, last_name), ''),
        add_to_groups = coalesce(${change.add_to_groups ?? null}, add_to_groups),
        start_chats = coalesce(${change.start_chats ?? null}, start_chats),
        version = nextval('control_versions')
      where id = ${id}`;
    const isRenamed =
      (first_name ?? before.first_name) !== before.first_name ||
      (last_name ?? before.last_name ?? '') !== (before.last_name ?? '');
    const shown = isRenamed ? await raiseChatVersions(sql, id) : { direct: [], people: [] };
    await noteStale(sql, [
      ['user', id],
      ...shown.direct.map((bot) => ['chat', bot, id] as const),
      ...shown.people.map(({ chat }) => ['chat', chat] as const),
    ]);
    return shown;
  });
}

/**
 * Sets or removes a person's avatar. Marks the new files as used and the former files as unused. Returns null if there
 * is no such person.
 */
export function setUserAvatar(
  db: Database,
  id: number,
  avatar: readonly StoredPicture[] | null,
): Promise<PictureChange | null> {
  return db.transaction(async (sql) => {
    const before = await sql.first<Pick<UserRow, 'avatar'>>`
      select avatar from users where id = ${id} and deleted_at is null for no key update`;
    if (before === null) return null;
    if (avatar === null && before.avatar === null) return { present: null, former: null };
    await sql.run`
      update users set avatar = ${avatar && JSON.stringify(avatar)}::jsonb, version = nextval('control_versions')
      where id = ${id}`;
    await forgetUnused(sql, keysOf(avatar));
    await noteUnused(sql, keysOf(before.avatar));
    await noteStale(sql, [['user', id]]);
    return { present: avatar, former: before.avatar };
  });
}

export async function releaseAvatar(sql: Sql, id: number): Promise<void> {
  const former = await sql.firstValue<UserRow['avatar']>`select avatar from users where id = ${id}`;
  await sql.run`update users set avatar = null where id = ${id}`;
  await noteUnused(sql, keysOf(former ?? null));
}

/** Loads up to `limit` of a person's chats with another person. The newest chat comes first. */
export const loadPeopleChats = (sql: Sql, user: number, limit: number) => sql.rows<ChatWithPerson>`
  select chat_id as chat, case when opener_id = ${user} then peer_id else opener_id end as other
  from person_chats where opener_id = ${user} or peer_id = ${user} order by chat_id limit ${limit}`;

/** Loads the names of people. Leaves out people whose accounts were deleted. */
export const loadNames = (sql: Sql, ids: readonly number[]) => sql.rows<NamesRow>`
  select id, external_id, username, first_name, last_name, language_code
  from users where id = any(${ids}::bigint[]) and deleted_at is null`;

export function removeUserTokens(db: Database, id: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, id))) return false;
    await sql.run`delete from user_tokens where user_id = ${id}`;
    await noteStale(sql, [['user', id]]);
    return true;
  });
}

/**
 * Locks a person, so that the account cannot end before the transaction ends. Fails with `refusal` if the account has
 * already ended, usually while this call was running.
 */
export async function lockPerson(
  sql: Sql,
  id: number,
  refusal:
    | 'unauthorized'
    | 'chat_member_not_found'
    | 'user_not_found'
    | 'join_request_missing'
    | 'join_request_not_found' = 'unauthorized',
): Promise<void> {
  const exists =
    await sql.some`select 1 from users where id = ${id} and deleted_at is null for no key update`;
  if (!exists) fail(refusal);
}

/** Locks a person whose tokens are about to change. Returns false if there is no such person. */
export const raiseVersion = (sql: Sql, id: number) => sql.some`
  update users set version = nextval('control_versions') where id = ${id} and deleted_at is null
  returning id`;

export const loadUser = (sql: Sql, id: number) => sql.first<UserRow>`
  select u.id, u.external_id, u.username, u.first_name, u.last_name, u.language_code, u.version,
    u.suspended_at is not null as suspended, u.add_to_groups, u.start_chats, u.avatar,
    coalesce((select array_agg(encode(t.hmac, 'base64') order by t.id)
      from user_tokens t where t.user_id = u.id), '{}') as tokens
  from users u where u.id = ${id} and u.deleted_at is null`;

/** Returns the owner of a username, or null if the name is reserved or belonged to a deleted bot. */
export const findName = async (sql: Sql, name: string) =>
  (await sql.firstValue<number>`
    select owner from names where name = ${name.toLowerCase()} and free_at is null and owner <> 0`) ?? null;

/** Holds SQL statements for people and their tokens. */
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { type Database, noteStale, type Sql, seconds } from '../sql.js';

export type AddPolicy = 'everyone' | 'shared_chats' | 'nobody';

export interface UserRow {
  readonly id: number;
  readonly external_id: string;
  readonly username: string | null;
  readonly first_name: string;
  readonly last_name: string | null;
  readonly language_code: string | null;
  readonly version: number;
  /** The lookup values of live tokens (base64). */
  readonly tokens: readonly string[];
  readonly suspended: boolean;
  readonly add_to_groups: AddPolicy;
  /** Who may start a chat with the person. */
  readonly start_chats: AddPolicy;
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
 * Creates a person with a first token. The token is a session if `agent` is not null. `lookupFor` computes the token's
 * lookup value for the new id. `also` runs in the same transaction.
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
  /** '' means that the token was issued without a name. */
  readonly name: string;
  /** Unix time in seconds. */
  readonly created_at: number;
  /** A date as YYYY-MM-DD in UTC, or null for a token that was never used. */
  readonly last_used_on: string | null;
}

/**
 * A new token. `lookup` is the digest (base64) under which the token is stored. Only the caller who creates the token
 * knows the token itself.
 */
export interface MadeUserToken {
  readonly id: number;
  readonly lookup: string;
}

/**
 * Adds a token to a person. Two tokens of a person cannot have the same name. Returns null when there is no such
 * person. Errors: `too_many_tokens`, `token_name_taken`.
 */
export function addUserToken(
  db: Database,
  user: number,
  name: string,
  lookup: Buffer,
): Promise<MadeUserToken | null> {
  return db.transaction(async (sql) => {
    // Concurrent calls that add a token for the same person must wait for each other.
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

/** Replaces the secret of a token that nobody has seen yet. Returns false when the token no longer exists. */
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

/** Removes a token by id or name. Returns false when there is no such token. */
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
}

export function changeUser(db: Database, id: number, change: UserChange): Promise<boolean> {
  return db.transaction(async (sql) => {
    const changed = await sql.some`
      update users set language_code = coalesce(${change.language_code ?? null}, language_code),
        add_to_groups = coalesce(${change.add_to_groups ?? null}, add_to_groups),
        start_chats = coalesce(${change.start_chats ?? null}, start_chats),
        version = nextval('control_versions')
      where id = ${id} and deleted_at is null returning id`;
    if (changed) await noteStale(sql, [['user', id]]);
    return changed;
  });
}

export function removeUserTokens(db: Database, id: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, id))) return false;
    await sql.run`delete from user_tokens where user_id = ${id}`;
    await noteStale(sql, [['user', id]]);
    return true;
  });
}

/**
 * Locks a person, so that the person's account cannot end before the transaction ends. Fails with `refusal` if the
 * account has already ended. This mostly happens when the account ends during a call by this person.
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

/** Locks a person for a change of their tokens. Returns false if there is no such person. */
export const raiseVersion = (sql: Sql, id: number) => sql.some`
  update users set version = nextval('control_versions') where id = ${id} and deleted_at is null
  returning id`;

export const loadUser = (sql: Sql, id: number) => sql.first<UserRow>`
  select u.id, u.external_id, u.username, u.first_name, u.last_name, u.language_code, u.version,
    u.suspended_at is not null as suspended, u.add_to_groups, u.start_chats,
    coalesce((select array_agg(encode(t.hmac, 'base64') order by t.id)
      from user_tokens t where t.user_id = u.id), '{}') as tokens
  from users u where u.id = ${id} and u.deleted_at is null`;

/** Returns the owner of a name, or null if the name is reserved or belonged to a deleted bot. */
export const findName = async (sql: Sql, name: string) =>
  (await sql.firstValue<number>`
    select owner from names where name = ${name.toLowerCase()} and free_at is null and owner <> 0`) ?? null;

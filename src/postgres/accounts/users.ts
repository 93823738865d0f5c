/** Statements on people and their tokens. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { type Database, noteStale, one, type Sql } from '../sql.js';

/** Who may add a person to groups and channels without asking. */
export type AddPolicy = 'everyone' | 'shared_chats' | 'nobody';

export interface UserRow {
  readonly id: number;
  readonly external_id: string;
  readonly username: string | null;
  readonly first_name: string;
  readonly last_name: string | null;
  readonly language_code: string | null;
  readonly version: number;
  /** lookup values of the person's live tokens, base64 */
  readonly tokens: readonly string[];
  readonly suspended: boolean;
  readonly add_to_groups: AddPolicy;
}

export interface NewUser {
  readonly username?: string | undefined;
  readonly first_name: string;
  readonly last_name?: string | undefined;
  readonly language_code?: string | undefined;
}

/** Takes a username; people, bots and public chats share one namespace. Error: `username_taken`. */
export async function takeName(sql: Sql, name: string, owner: number): Promise<void> {
  const taken = await sql.query<{ name: string }>(
    `insert into names as n (name, owner) values ($1, $2)
     on conflict (name) do update set owner = excluded.owner, free_at = null where n.free_at <= now() returning name`,
    [name.toLowerCase(), owner],
  );
  if (taken.length === 0) fail('username_taken');
}

/** Inserts a person within a transaction; returns the id. Error: `username_taken`. */
export async function insertUser(sql: Sql, user: NewUser): Promise<number> {
  const { id } = await one<{ id: number }>(sql, "select nextval('ids') as id");
  if (user.username !== undefined) await takeName(sql, user.username, id);
  await sql.query(
    `insert into users (id, username, first_name, last_name, language_code) values ($1, $2, $3, $4, $5)`,
    [id, user.username ?? null, user.first_name, user.last_name ?? null, user.language_code ?? null],
  );
  return id;
}

/**
 * Creates a person with a first token. `lookupFor` computes the token's lookup value for the new id; `also` runs in
 * the same transaction.
 */
export function createUser(
  db: Database,
  user: NewUser,
  lookupFor: (id: number) => Buffer,
  also: (sql: Sql, id: number) => Promise<void> = async () => {},
): Promise<number> {
  return db.transaction(async (sql) => {
    const id = await insertUser(sql, user);
    await also(sql, id);
    await sql.query('insert into user_tokens (user_id, hmac) values ($1, $2)', [id, lookupFor(id)]);
    await noteStale(sql, [['user', id]]);
    return id;
  });
}

export interface UserTokenRow {
  readonly id: number;
  /** name of the token; '' for one that was issued without a name */
  readonly name: string;
  /** when the token was created, Unix time in seconds */
  readonly created_at: number;
  /** YYYY-MM-DD in UTC; null for a token that was never used */
  readonly last_used_on: string | null;
}

/** A created token, named by the digest that is stored of it (base64). Only its creator knows the token. */
export interface MadeUserToken {
  readonly id: number;
  readonly lookup: string;
}

/**
 * Adds a token to a person. A person's named tokens have different names. Returns null when there is no such person.
 * Errors: `too_many_tokens`, `token_name_taken`.
 */
export function addUserToken(
  db: Database,
  user: number,
  name: string,
  lookup: Buffer,
): Promise<MadeUserToken | null> {
  return db.transaction(async (sql) => {
    // Concurrent additions for one person wait here.
    if (!(await raiseVersion(sql, user))) return null;
    const { count, taken } = await one<{ count: number; taken: boolean }>(
      sql,
      `select count(*) as count, coalesce(bool_or(name = $2 and $2 <> ''), false) as taken
         from user_tokens where user_id = $1`,
      [user, name],
    );
    if (Number(count) >= limits.user_tokens_max) fail('too_many_tokens');
    if (taken) fail('token_name_taken');
    const made = await one<{ id: number }>(
      sql,
      `insert into user_tokens (user_id, hmac, name) values ($1, $2, $3)
       returning id`,
      [user, lookup, name],
    );
    await noteStale(sql, [['user', user]]);
    return { ...made, lookup: lookup.toString('base64') };
  });
}

/** Replaces the secret of a token that has not been shown to anybody. Returns false when the token no longer exists. */
export function replaceUserToken(db: Database, user: number, id: number, lookup: Buffer): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, user))) return false;
    const rows = await sql.query(
      'update user_tokens set hmac = $3 where user_id = $1 and id = $2 returning id',
      [user, id, lookup],
    );
    await noteStale(sql, [['user', user]]);
    return rows.length > 0;
  });
}

/** Tokens of a person with ids greater than `after`, in order of creation. */
export function loadUserTokens(
  sql: Sql,
  user: number,
  after: number,
  limit: number,
): Promise<UserTokenRow[]> {
  return sql.query<UserTokenRow>(
    `select id, name, extract(epoch from created_at)::bigint as created_at, last_used_on::text as last_used_on
       from user_tokens where user_id = $1 and id > $2 order by id limit $3`,
    [user, after, limit],
  );
}

/** Removes one token of a person, by id or by name. Returns false when there is no such token. */
export function removeUserToken(
  db: Database,
  user: number,
  which: { readonly id: number } | { readonly name: string },
): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, user))) return false;
    const rows =
      'id' in which
        ? await sql.query('delete from user_tokens where user_id = $1 and id = $2 returning id', [
            user,
            which.id,
          ])
        : await sql.query(
            "delete from user_tokens where user_id = $1 and name = $2 and name <> '' returning id",
            [user, which.name],
          );
    if (rows.length > 0) await noteStale(sql, [['user', user]]);
    return rows.length > 0;
  });
}

/** Records that tokens were used today. */
export async function noteTokensUsed(sql: Sql, lookups: readonly Buffer[]): Promise<void> {
  await sql.query(
    `update user_tokens set last_used_on = (now() at time zone 'utc')::date
      where hmac = any($1::bytea[]) and last_used_on is distinct from (now() at time zone 'utc')::date`,
    [lookups],
  );
}

/** Changes to a person's own settings; absent fields are left unchanged. */
export interface UserChange {
  readonly language_code?: string | undefined;
  readonly add_to_groups?: AddPolicy | undefined;
}

/** Changes settings of a person. Returns false when there is no such person. */
export function changeUser(db: Database, id: number, change: UserChange): Promise<boolean> {
  return db.transaction(async (sql) => {
    const rows = await sql.query(
      `update users set language_code = coalesce($2, language_code), add_to_groups = coalesce($3, add_to_groups),
              version = nextval('control_versions')
        where id = $1 and deleted_at is null returning id`,
      [id, change.language_code ?? null, change.add_to_groups ?? null],
    );
    if (rows.length > 0) await noteStale(sql, [['user', id]]);
    return rows.length > 0;
  });
}

/** Removes every token of a person. Returns false when there is no such person. */
export function removeUserTokens(db: Database, id: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, id))) return false;
    await sql.query('delete from user_tokens where user_id = $1', [id]);
    await noteStale(sql, [['user', id]]);
    return true;
  });
}

/**
 * Prevents the end of a person's account until the transaction ends. Fails with `refusal` if it has already ended,
 * usually during a call that the person made while it existed.
 */
export async function lockPerson(
  sql: Sql,
  id: number,
  refusal: 'unauthorized' | 'chat_member_not_found' | 'user_not_found' = 'unauthorized',
): Promise<void> {
  const rows = await sql.query('select 1 from users where id = $1 and deleted_at is null for no key update', [
    id,
  ]);
  if (rows.length === 0) fail(refusal);
}

async function raiseVersion(sql: Sql, id: number): Promise<boolean> {
  const rows = await sql.query(
    "update users set version = nextval('control_versions') where id = $1 and deleted_at is null returning id",
    [id],
  );
  return rows.length > 0;
}

export async function loadUser(sql: Sql, id: number): Promise<UserRow | null> {
  const [row] = await sql.query<UserRow>(
    `select u.id, u.external_id, u.username, u.first_name, u.last_name, u.language_code, u.version, u.suspended_at is not null as suspended, u.add_to_groups,
            coalesce((select array_agg(encode(t.hmac, 'base64') order by t.id) from user_tokens t where t.user_id = u.id),
                     '{}') as tokens
       from users u where u.id = $1 and u.deleted_at is null`,
    [id],
  );
  return row ?? null;
}

/** Id of the person, bot or public chat that holds a name; null for a reserved name or one of a deleted bot. */
export async function findName(sql: Sql, name: string): Promise<number | null> {
  const [row] = await sql.query<{ owner: number }>(
    'select owner from names where name = $1 and free_at is null and owner <> 0',
    [name.toLowerCase()],
  );
  return row?.owner ?? null;
}

/** Statements on people and their tokens. */
import { fail } from '../errors.js';
import { type Database, noteStale, one, type Sql } from './sql.js';

export interface UserRow {
  readonly id: number;
  readonly external_id: string;
  readonly username: string | null;
  readonly first_name: string;
  readonly last_name: string | null;
  readonly language_code: string | null;
  readonly version: number;
  /** lookup values of live tokens, base64 */
  readonly tokens: readonly string[];
  readonly suspended: boolean;
}

export interface NewUser {
  readonly username?: string | undefined;
  readonly first_name: string;
  readonly last_name?: string | undefined;
  readonly language_code?: string | undefined;
}

/** Takes a name that people, bots and public chats share. Error: `username_taken`. */
export async function takeName(sql: Sql, name: string, owner: number): Promise<void> {
  const taken = await sql.query<{ name: string }>(
    `insert into names as n (name, owner) values ($1, $2)
     on conflict (name) do update set owner = excluded.owner, free_at = null where n.free_at <= now() returning name`,
    [name.toLowerCase(), owner],
  );
  if (taken.length === 0) fail('username_taken');
}

/** Creates a person with a first token. `lookupFor` makes the token's lookup value for the new id. */
export function createUser(db: Database, user: NewUser, lookupFor: (id: number) => Buffer): Promise<number> {
  return db.transaction(async (sql) => {
    const { id } = await one<{ id: number }>(sql, "select nextval('ids') as id");
    if (user.username !== undefined) await takeName(sql, user.username, id);
    await sql.query(
      `insert into users (id, username, first_name, last_name, language_code) values ($1, $2, $3, $4, $5)`,
      [id, user.username ?? null, user.first_name, user.last_name ?? null, user.language_code ?? null],
    );
    await sql.query('insert into user_tokens (user_id, hmac) values ($1, $2)', [id, lookupFor(id)]);
    await noteStale(sql, [['user', id]]);
    return id;
  });
}

/** Adds a token to a person. False when there is no such person. */
export function addUserToken(db: Database, id: number, lookup: Buffer): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, id))) return false;
    await sql.query('insert into user_tokens (user_id, hmac) values ($1, $2)', [id, lookup]);
    await noteStale(sql, [['user', id]]);
    return true;
  });
}

/** Removes every token of a person. False when there is no such person. */
export function removeUserTokens(db: Database, id: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    if (!(await raiseVersion(sql, id))) return false;
    await sql.query('delete from user_tokens where user_id = $1', [id]);
    await noteStale(sql, [['user', id]]);
    return true;
  });
}

async function raiseVersion(sql: Sql, id: number): Promise<boolean> {
  const rows = await sql.query(
    "update users set version = nextval('control_versions') where id = $1 returning id",
    [id],
  );
  return rows.length > 0;
}

export async function loadUser(sql: Sql, id: number): Promise<UserRow | null> {
  const [row] = await sql.query<UserRow>(
    `select u.id, u.external_id, u.username, u.first_name, u.last_name, u.language_code, u.version, u.suspended_at is not null as suspended,
            coalesce((select array_agg(encode(t.hmac, 'base64') order by t.id) from user_tokens t where t.user_id = u.id),
                     '{}') as tokens
       from users u where u.id = $1`,
    [id],
  );
  return row ?? null;
}

/** The person, bot or public chat that holds a name, by id. Nobody holds one that is reserved, or was a deleted bot's. */
export async function findName(sql: Sql, name: string): Promise<number | null> {
  const [row] = await sql.query<{ owner: number }>(
    'select owner from names where name = $1 and free_at is null and owner <> 0',
    [name.toLowerCase()],
  );
  return row?.owner ?? null;
}

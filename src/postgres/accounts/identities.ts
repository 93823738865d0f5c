/** Statements on identities: people as identity providers name them, each by an issuer and a subject. */
import { ApiError, fail } from '../../errors.js';
import { type Database, noteStale, one, type Sql } from '../sql.js';
import { insertUser, type NewUser } from './users.js';

export interface IdentityRow {
  readonly id: number;
  readonly issuer: string;
  readonly subject: string;
  /** the person; null for an identity that no longer belongs to anybody */
  readonly user_id: number | null;
  readonly version: number;
}

const columns = 'id, issuer, subject, user_id, version';

export async function loadIdentity(sql: Sql, issuer: string, subject: string): Promise<IdentityRow | null> {
  const [row] = await sql.query<IdentityRow>(
    `select ${columns} from user_identities where issuer = $1 and subject = $2`,
    [issuer, subject],
  );
  return row ?? null;
}

export async function loadIdentityById(sql: Sql, id: number): Promise<IdentityRow | null> {
  const [row] = await sql.query<IdentityRow>(`select ${columns} from user_identities where id = $1`, [id]);
  return row ?? null;
}

async function release(
  sql: Sql,
  issuer: string,
  user: number,
  keep: string | null,
): Promise<readonly string[]> {
  const rows = await sql.query<{ id: number; subject: string }>(
    `update user_identities set user_id = null, version = nextval('control_versions')
      where issuer = $1 and user_id = $2 and subject is distinct from $3 returning id, subject`,
    [issuer, user, keep],
  );
  await noteStale(
    sql,
    rows.map(({ id }) => ['identity', id]),
  );
  return rows.map(({ subject }) => subject);
}

/** Links a subject to a person within a transaction. Error: `subject_taken`. */
export async function takeSubject(sql: Sql, issuer: string, user: number, subject: string): Promise<void> {
  const [taken] = await sql.query<{ id: number }>(
    `insert into user_identities (issuer, subject, user_id) values ($1, $2, $3)
     on conflict (issuer, subject) do update set user_id = excluded.user_id, version = excluded.version
      where user_identities.user_id is null or user_identities.user_id = excluded.user_id
     returning id`,
    [issuer, subject, user],
  );
  if (!taken) return fail('subject_taken');
  await noteStale(sql, [['identity', taken.id]]);
}

/**
 * Links a subject to a person, in place of their former subject of this issuer; null only unlinks. Returns the former
 * subjects, or null when there is no such person. Error: `subject_taken`.
 */
export function setSubject(
  db: Database,
  issuer: string,
  user: number,
  subject: string | null,
): Promise<readonly string[] | null> {
  return db.transaction(async (sql) => {
    const people = await sql.query('select 1 from users where id = $1 and deleted_at is null for update', [
      user,
    ]);
    if (people.length === 0) return null;
    const former = await release(sql, issuer, user, subject);
    if (subject !== null) await takeSubject(sql, issuer, user, subject);
    // Makes nodes forget the person, and with them the cached tokens of the former subject.
    await noteStale(sql, [['user', user]]);
    return former;
  });
}

/**
 * Returns the person of a subject; creates one if there is none. Concurrent calls create only one. A username that is
 * not available is left out.
 */
export function createForSubject(
  db: Database,
  issuer: string,
  subject: string,
  user: NewUser,
): Promise<number> {
  return db.transaction(async (sql) => {
    // Concurrent calls for one subject wait for this row.
    const identity = await one<{ id: number; user_id: number | null }>(
      sql,
      `insert into user_identities (issuer, subject) values ($1, $2)
       on conflict (issuer, subject) do update set issuer = excluded.issuer returning id, user_id`,
      [issuer, subject],
    );
    if (identity.user_id !== null) return identity.user_id;
    const made = await insertUser(sql, user).catch((error: unknown) => {
      if (!(error instanceof ApiError) || user.username === undefined) throw error;
      return insertUser(sql, { ...user, username: undefined });
    });
    await sql.query(
      "update user_identities set user_id = $2, version = nextval('control_versions') where id = $1",
      [identity.id, made],
    );
    await noteStale(sql, [
      ['user', made],
      ['identity', identity.id],
    ]);
    return made;
  });
}

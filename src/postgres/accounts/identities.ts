/**
 * SQL statements for identities. An identity consists of an issuer (the identity provider) and a subject (the
 * name that this provider uses for a person).
 */
import { ApiError, fail } from '../../errors.js';
import { type Database, fragment, noteStale, type Sql } from '../sql.js';
import { insertUser, type NewUser } from './users.js';

export interface IdentityRow {
  readonly id: number;
  readonly issuer: string;
  readonly subject: string;
  /** The person with this identity. Null after the identity was removed from its person. */
  readonly user_id: number | null;
  readonly version: number;
}

const columns = fragment('id, issuer, subject, user_id, version');

export const loadIdentity = (sql: Sql, issuer: string, subject: string) => sql.first<IdentityRow>`
  select ${columns} from user_identities where issuer = ${issuer} and subject = ${subject}`;

export const loadIdentityById = (sql: Sql, id: number) => sql.first<IdentityRow>`
  select ${columns} from user_identities where id = ${id}`;

async function release(sql: Sql, issuer: string, user: number, keep: string | null) {
  const rows = await sql.rows<{ id: number; subject: string }>`
    update user_identities set user_id = null, version = nextval('control_versions')
    where issuer = ${issuer} and user_id = ${user} and subject is distinct from ${keep}
    returning id, subject`;
  await noteStale(
    sql,
    rows.map(({ id }) => ['identity', id]),
  );
  return rows.map(({ subject }) => subject);
}

/** Gives a subject to a person inside the caller's transaction. Error: `subject_taken`. */
export async function takeSubject(sql: Sql, issuer: string, user: number, subject: string): Promise<void> {
  const taken = await sql.firstValue<number>`
    insert into user_identities (issuer, subject, user_id) values (${issuer}, ${subject}, ${user})
    on conflict (issuer, subject) do update set user_id = excluded.user_id, version = excluded.version
     where user_identities.user_id is null or user_identities.user_id = excluded.user_id
    returning id`;
  if (taken === undefined) return fail('subject_taken');
  await noteStale(sql, [['identity', taken]]);
}

/**
 * Replaces the person's subject at this issuer. If `subject` is null, only removes the former subject. Returns the
 * former subjects, or null if the person does not exist. Error: `subject_taken`.
 */
export function setSubject(
  db: Database,
  issuer: string,
  user: number,
  subject: string | null,
): Promise<readonly string[] | null> {
  return db.transaction(async (sql) => {
    const exists = await sql.some`select 1 from users where id = ${user} and deleted_at is null for update`;
    if (!exists) return null;
    const former = await release(sql, issuer, user, subject);
    if (subject !== null) await takeSubject(sql, issuer, user, subject);
    // Makes nodes remove the person and the former subject's tokens from their caches.
    await noteStale(sql, [['user', user]]);
    return former;
  });
}

export interface FoundPerson {
  readonly id: number;
  /** Whether this call created the person. */
  readonly isNew: boolean;
}

/**
 * Returns the person with this subject, or creates a person if the subject is new. Concurrent calls create only one
 * person. If the wanted username is not available, the new person has no username. `also` runs in the transaction that
 * creates the person.
 */
export function createForSubject(
  db: Database,
  issuer: string,
  subject: string,
  user: NewUser,
  also: (sql: Sql, id: number) => Promise<unknown> = async () => {},
): Promise<FoundPerson> {
  return db.transaction(async (sql) => {
    // Locks the identity's row, so that concurrent calls for one subject wait for each other.
    const identity = await sql.one<{ id: number; user_id: number | null }>`
      insert into user_identities (issuer, subject) values (${issuer}, ${subject})
      on conflict (issuer, subject) do update set issuer = excluded.issuer returning id, user_id`;
    if (identity.user_id !== null) return { id: identity.user_id, isNew: false };
    const made = await insertUser(sql, user).catch((error: unknown) => {
      if (!(error instanceof ApiError) || user.username === undefined) throw error;
      return insertUser(sql, { ...user, username: undefined });
    });
    await also(sql, made);
    await sql.run`
      update user_identities set user_id = ${made}, version = nextval('control_versions')
      where id = ${identity.id}`;
    await noteStale(sql, [
      ['user', made],
      ['identity', identity.id],
    ]);
    return { id: made, isNew: true };
  });
}

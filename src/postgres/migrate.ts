/**
 * Updates a database to the schema of this program. Migrations are numbered SQL files. Each file is applied once, in
 * one transaction. If a file begins with `-- serves 0014`, programs of schema 14 and later can still use the database
 * after this migration. Without this line, only programs that contain the file can.
 */

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { addressOf } from '../rules/database_url.js';
import { postgresVersionProblem } from '../rules/versions.js';
import { systemTime, type Time } from '../time.js';
import { openSession } from './session.js';

const shippedFolder = fileURLToPath(new URL('./migrations', import.meta.url));

/** The key of the advisory lock: an arbitrary number that must be equal on all nodes. */
const advisoryLock = 7_261_530_114;

interface Migration {
  readonly version: number;
  readonly file: string;
  readonly sql: string;
  readonly checksum: string;
  /** The schema version of the oldest program that can use the present schema. */
  readonly serves: number;
}

/**
 * Thrown if this program cannot use the database, for example because the database is newer than the program, an
 * applied migration file has changed, or Postgres is too old.
 */
export class SchemaError extends Error {}

function readMigrations(folder: string): Migration[] {
  const migrations = readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file) => {
      const version = Number(/^(\d{4})_\w+\.sql$/.exec(file)?.[1]);
      const sql = readFileSync(`${folder}/${file}`, 'utf8');
      const serves = Number(/^-- serves (\d{4})$/m.exec(sql)?.[1] ?? version);
      return { version, file, sql, checksum: createHash('sha256').update(sql).digest('hex'), serves };
    });
  migrations.forEach(({ version, file }, i) => {
    if (version !== i + 1) throw new SchemaError(`${file}: expected number ${i + 1} of four digits`);
  });
  return migrations;
}

export function schemaVersion(folder = shippedFolder): number {
  return readMigrations(folder).length;
}

interface Applied {
  readonly version: number;
  readonly file: string;
  readonly checksum: string;
}

function pending(migrations: readonly Migration[], applied: readonly Applied[]): Migration[] {
  for (const row of applied) {
    const migration = migrations[row.version - 1];
    if (!migration) {
      throw new SchemaError(
        `the database has schema ${row.version} (${row.file}); this program knows ${migrations.length}`,
      );
    }
    if (migration.checksum !== row.checksum) {
      throw new SchemaError(`${migration.file} differs from what was applied as ${row.file}`);
    }
  }
  const done = new Set(applied.map((row) => row.version));
  return migrations.filter(({ version }) => !done.has(version));
}

/**
 * Limits the wait for a table lock, because all later sessions wait behind a session that waits for the lock. After a
 * timeout, the migration is tried again.
 */
const lockTimeout = '1s';
const lockTriesMax = 60;
const lockPauseMs = 500;

/**
 * Runs `work` in a transaction under an advisory lock. The lock belongs to the transaction, because a session's lock
 * would not work through a pooler.
 */
async function alone<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    await client.query('set local statement_timeout = 0');
    await client.query('select pg_advisory_xact_lock($1)', [advisoryLock]);
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

/** Applies a migration file. Returns false if another program has already applied it. */
async function apply(client: pg.Client, migration: Migration, time: Time): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      return await alone(client, () => applyOnce(client, migration));
    } catch (error) {
      if ((error as { code?: string }).code !== '55P03' || tries >= lockTriesMax)
        throw new Error(`${migration.file}: ${(error as Error).message}`, { cause: error });
      await time.sleep(lockPauseMs);
    }
  }
}

async function applyOnce(client: pg.Client, migration: Migration): Promise<boolean> {
  const { version, file, checksum, serves } = migration;
  const known = await client.query('select from schema_migrations where version = $1', [version]);
  if (known.rowCount !== 0) return false;
  await client.query(`set local lock_timeout = '${lockTimeout}'`);
  await client.query(migration.sql);
  await client.query(
    'insert into schema_migrations (version, file, checksum, serves) values ($1, $2, $3, $4)',
    [version, file, checksum, serves],
  );
  return true;
}

async function readApplied(client: pg.Client): Promise<Applied[]> {
  await client.query(`create table if not exists schema_migrations (
    version int primary key,
    file text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
  )`);
  await client.query('alter table schema_migrations add column if not exists serves int');
  const { rows } = await client.query<Applied>(
    'select version, file, checksum from schema_migrations order by 1',
  );
  return rows;
}

const connect = (url: string) => openSession(url, 'petrel-migrate', 2_000);

/**
 * Applies the missing migrations, up to and including `upTo`, and returns the schema version. Several programs may
 * start at the same time, because each file is applied by only one of them. Calls `log` for each file. Throws a
 * SchemaError if an applied file has changed or the database is newer than this program. Also throws any error that
 * Postgres reports for a file, after rolling back the changes of this file.
 */
export async function migrate(
  url: string,
  log: (line: string) => void = () => {},
  folder = shippedFolder,
  upTo = Number.POSITIVE_INFINITY,
  time = systemTime,
): Promise<number> {
  const migrations = readMigrations(folder);
  const client = await connect(url);
  try {
    const tooOld = postgresVersionProblem(await serverVersion(client));
    if (tooOld !== null) throw new SchemaError(tooOld);
    const applied = await alone(client, () => readApplied(client));
    const missing = pending(migrations, applied).filter(({ version }) => version <= upTo);
    let own = 0;
    for (const migration of missing) {
      const start = time.monotonic();
      if (!(await apply(client, migration, time))) continue;
      own++;
      log(`applied ${migration.file} in ${Math.round(time.monotonic() - start)} ms`);
    }
    if (own === 0) log(`schema ${migrations.length} is up to date`);
    return migrations.length;
  } finally {
    await client.end();
  }
}

interface DatabaseState {
  readonly server: string;
  readonly pooled: boolean;
  readonly applied: number;
  /** Programs of this schema version and later can use the database. */
  readonly serves: number;
}

const serverVersion = async (client: pg.Client): Promise<string> =>
  (await client.query('show server_version')).rows[0].server_version;

async function databaseState(url: string): Promise<DatabaseState> {
  const client = await connect(url);
  try {
    const server = await serverVersion(client);
    const { rows: asked } = await client.query(
      "select to_regclass('schema_migrations') is not null as known, pg_backend_pid() as pid",
    );
    const [{ known, pid }] = asked;
    // Detects a pooler. At the start of a session, a pooler sends a process id of its own, which differs from the id
    // that Postgres reports.
    const pooled = pid !== (client as unknown as { readonly processID: number }).processID;
    if (!known) return { server, pooled, applied: 0, serves: 0 };
    // If the column `serves` of a migration is null, only programs that contain this migration can use the database.
    const { rows } = await client.query(`select coalesce(max(version), 0) as applied,
      coalesce(max(coalesce((to_jsonb(m) ->> 'serves')::int, version)), 0) as serves from schema_migrations m`);
    return { server, pooled, ...rows[0] };
  } finally {
    await client.end();
  }
}

/** Returns the schema version, or 0 before the first migration. Throws when the database is unreachable. */
export const appliedVersion = async (url: string): Promise<number> => (await databaseState(url)).applied;

/**
 * Returns the reason why a program of schema version `wanted` cannot use the database, or null if it can. Throws if the
 * database is unreachable.
 */
export async function databaseProblem(url: string, wanted = schemaVersion()): Promise<string | null> {
  const { server, pooled, applied, serves } = await databaseState(url);
  const tooOld = postgresVersionProblem(server);
  if (tooOld !== null) return tooOld;
  if (pooled && !addressOf(url).pooled)
    return (
      'DATABASE_URL leads to a pooler: add ?pooler=unnamed to it, or ?pooler=prepared for a PgBouncer from 1.21 on ' +
      'with max_prepared_statements'
    );
  if (applied < wanted)
    return `the database has schema ${applied}, this program needs ${wanted}: run "petrel migrate"`;
  if (applied === wanted || serves <= wanted) return null;
  return `the database has schema ${applied}, this program needs ${wanted}: use the version that brought it there`;
}

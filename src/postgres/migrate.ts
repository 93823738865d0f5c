/**
 * Brings a database to the schema of this program: numbered SQL files, each applied once and in one transaction.
 *
 * A file that begins with `-- serves 0014` leaves programs of schema 14 and later working: they go on, and start, on a database that
 * has it. Without the line only programs that know the file do.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

/** Found from `src/` and from the built `dist/` alike. */
const shippedFolder = fileURLToPath(new URL('../../src/postgres/migrations', import.meta.url));

/** Any number will do, as long as every node takes the same. */
const advisoryLock = 7_261_530_114;

interface Migration {
  readonly version: number;
  readonly file: string;
  readonly sql: string;
  readonly checksum: string;
  /** The oldest schema whose programs work on with this one. */
  readonly serves: number;
}

/** A database that this program must not touch: newer than it, or changed under its feet. */
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

/** The schema version that this program needs: the number of its last migration. */
export function schemaVersion(folder = shippedFolder): number {
  return readMigrations(folder).length;
}

interface Applied {
  readonly version: number;
  readonly file: string;
  readonly checksum: string;
}

/** Holds the files against what the database says of itself, and returns those that are still to apply. */
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

/** Whoever waits for a table makes all who come later wait too: it is given up soon, and tried again. */
const lockTimeout = '1s';
const lockTriesMax = 60;
const lockPauseMs = 500;

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await applyOnce(client, migration);
    } catch (error) {
      const { code } = (error as Error).cause as { code?: string };
      if (code !== '55P03' || tries >= lockTriesMax) throw error;
      await sleep(lockPauseMs);
    }
  }
}

async function applyOnce(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(`set local lock_timeout = '${lockTimeout}'`);
    await client.query(migration.sql);
    await client.query(
      'insert into schema_migrations (version, file, checksum, serves) values ($1, $2, $3, $4)',
      [migration.version, migration.file, migration.checksum, migration.serves],
    );
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw new Error(`${migration.file}: ${(error as Error).message}`, { cause: error });
  }
}

const connect = async (url: string): Promise<pg.Client> => {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 2_000,
    application_name: 'petrel-migrate',
  });
  // Whoever waits for a query hears of a lost connection by its rejection.
  client.on('error', () => {});
  await client.connect();
  return client;
};

/**
 * Applies what is missing and returns the schema version. Of several programs that start at once, one applies and the
 * others wait. `log` is told of each file; `upTo` leaves later ones out. Errors: SchemaError when an applied file has changed or the database is
 * newer than this program; whatever Postgres says of a file, which then left no trace.
 */
export async function migrate(
  url: string,
  log: (line: string) => void = () => {},
  folder = shippedFolder,
  upTo = Number.POSITIVE_INFINITY,
): Promise<number> {
  const migrations = readMigrations(folder);
  const client = await connect(url);
  try {
    await client.query('select pg_advisory_lock($1)', [advisoryLock]);
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
    const missing = pending(migrations, rows).filter(({ version }) => version <= upTo);
    for (const migration of missing) {
      const start = performance.now();
      await apply(client, migration);
      log(`applied ${migration.file} in ${Math.round(performance.now() - start)} ms`);
    }
    if (missing.length === 0) log(`schema ${migrations.length} is up to date`);
    return migrations.length;
  } finally {
    // The lock belongs to the session and goes with it.
    await client.end();
  }
}

interface SchemaState {
  /** 0 before the first migration. */
  readonly applied: number;
  /** The oldest schema whose programs work on it. */
  readonly serves: number;
}

async function schemaState(url: string): Promise<SchemaState> {
  const client = await connect(url);
  try {
    const known = await client.query("select to_regclass('schema_migrations') is not null as known");
    if (!known.rows[0].known) return { applied: 0, serves: 0 };
    // What was applied before the column came serves programs that know it.
    const { rows } = await client.query(`select coalesce(max(version), 0) as applied,
      coalesce(max(coalesce((to_jsonb(m) ->> 'serves')::int, version)), 0) as serves from schema_migrations m`);
    return rows[0];
  } finally {
    await client.end();
  }
}

/** The schema version of a database, 0 before the first migration. Throws when it cannot be asked. */
export const appliedVersion = async (url: string): Promise<number> => (await schemaState(url)).applied;

/** Why a program of this schema cannot work on the database; null when it can. Throws when it cannot be asked. */
export async function schemaProblem(url: string, wanted = schemaVersion()): Promise<string | null> {
  const { applied, serves } = await schemaState(url);
  if (applied < wanted)
    return `the database has schema ${applied}, this program needs ${wanted}: run "petrel migrate"`;
  if (applied === wanted || serves <= wanted) return null;
  return `the database has schema ${applied}, this program needs ${wanted}: use the version that brought it there`;
}

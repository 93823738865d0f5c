/**
 * Provides real servers for tests: one Redis and one PostgreSQL for the whole run, and separate servers for a single
 * file.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { startPostgres } from '../../src/dev/postgres.js';
import { startRedis } from '../../src/dev/redis.js';
import { migrate } from '../../src/postgres/migrate.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** All files of the run share this Redis. Use keys that no other file uses, or `freshRedis()`. */
    redisUrl: string;
    /** The database `petrel` of the shared server. Use `freshDatabase()` instead. */
    databaseUrl: string;
  }
}

export interface TestServers {
  readonly redisUrl: string;
  readonly databaseUrl: string;
  stop(): Promise<void>;
}

/** Creates a temporary folder that PostgreSQL’s own user may enter. Its path begins with `prefix`. */
export function temporaryFolder(prefix = join(tmpdir(), 'petrel-test-')): string {
  const dir = mkdtempSync(prefix);
  chmodSync(dir, 0o711);
  return dir;
}

/** Creates a temporary folder for data of PostgreSQL. The folder is in memory if the system has enough memory. */
export const memoryFolder = (): string =>
  temporaryFolder(join(process.env.PETREL_TEST_MEMORY ?? tmpdir(), 'petrel-test-'));

/** Starts both servers in a temporary folder, without durability. `stop` removes the folder. */
export async function startTestServers(): Promise<TestServers> {
  const dir = memoryFolder();
  const [redis, postgres] = await Promise.all([
    startRedis({ dir: join(dir, 'redis'), appendfsync: 'no', detached: false }),
    // With TEST_SHARDS, each node has connections to three databases.
    startPostgres({ dir: join(dir, 'postgres'), durable: false, detached: false, connections: 400 }),
  ]);
  // Databases of tests live for seconds, so nothing in them needs a vacuum.
  await onServer(postgres.url, 'alter system set autovacuum = off');
  // Makes the kernel copy the template database, because this is five times as fast.
  if (process.platform === 'linux')
    await onServer(postgres.url, "alter system set file_copy_method = 'clone'");
  await onServer(postgres.url, 'select pg_reload_conf()');
  // Sets the SCRAM iterations to 1, because a run opens thousands of connections. With the usual 4,096 iterations, each
  // connection would take several milliseconds of processor time on both sides.
  const { username, password } = new URL(postgres.url);
  await onServer(
    postgres.url,
    `set scram_iterations = 1; alter role ${username} password '${decodeURIComponent(password)}'`,
  );
  await onServer(postgres.url, `create database ${template}`);
  await migrate(databaseNamed(postgres.url, template));
  return {
    redisUrl: redis.url,
    databaseUrl: postgres.url,
    async stop() {
      await Promise.all([redis.stop(), postgres.stop()]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The connection of this worker to the shared server, which starts a process for each connection. */
let connection: pg.Pool | undefined;

async function onSharedServer(statement: string): Promise<void> {
  connection ??= new pg.Pool({
    connectionString: inject('databaseUrl'),
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  }).on('error', () => undefined);
  await connection.query(statement);
}

/** The template database with the current schema. No client connects to this database. */
const template = 'migrated';

const databaseNamed = (url: string, name: string) =>
  Object.assign(new URL(url), { pathname: `/${name}` }).href;

export interface FreshDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

async function createDatabase(options: string): Promise<FreshDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onSharedServer(`create database ${name} ${options}`);
  return {
    url: databaseNamed(inject('databaseUrl'), name),
    drop: () => onSharedServer(`drop database if exists ${name} with (force)`),
  };
}

export const freshDatabase = (): Promise<FreshDatabase> => createDatabase('');

/**
 * Creates a new database with the current schema and a new installation id. Copies a template, because a copy is faster
 * than migrations.
 */
export async function migratedDatabase(): Promise<FreshDatabase> {
  // Copies the files of the template, because this takes less processor time than logging every page. In these tests,
  // files are never synced to the disk.
  const database = await createDatabase(`template ${template} strategy file_copy`);
  await onServer(database.url, "update installation set value = gen_random_uuid() where name = 'ID'");
  return database;
}

export interface FreshRedis {
  readonly url: string;
  readonly cluster?: readonly string[];
  /**
   * The URLs of the Sentinels, and the value of REDIS_URL to use with them. `url` is then the URL of the first master.
   */
  readonly sentinels?: readonly string[];
  readonly masterUrl?: string;
  readonly port: number;
  readonly pid: number;
  /** The folder of the append-only file. A cluster has none. */
  readonly dir?: string;
  stop(): Promise<void>;
}

export async function freshRedis(): Promise<FreshRedis> {
  const dir = temporaryFolder();
  const { url, port, pid, stop } = await startRedis({ dir, appendfsync: 'no', detached: false });
  return {
    url,
    port,
    pid,
    dir,
    async stop() {
      await stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

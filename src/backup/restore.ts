/** Restores a backup folder into an empty Postgres and an empty Redis (task `restore`). */
import { copyFileSync, createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { type Config, redisOf, requireSettings } from '../config/config.js';
import { startRedis } from '../dev/redis.js';
import { copyIn, isEmpty } from '../postgres/copy.js';
import { holdOutgoing, renameInstallation, renameShard } from '../postgres/identity.js';
import { migrate, schemaVersion } from '../postgres/migrate.js';
import { createPool, type Pool } from '../postgres/pool.js';
import { checkRedis } from '../redis/check.js';
import { RedisConnection, type RedisServers } from '../redis/connection.js';
import { copyKeys, countKeys } from '../redis/copy.js';
import type { RedisTarget } from '../redis/target.js';
import { type Keys, makeKeys } from '../store/core/keys.js';
import { createSecrets, type Secrets } from '../store/core/secrets.js';
import { BackupError, type Manifest, readManifest, type SavedDatabase } from './manifest.js';

interface Opened {
  readonly connection: RedisServers;
  readonly hints: { close(): void };
}

export interface RestoreOptions {
  readonly redis: boolean;
  /** If true, sends nothing to webhooks and browsers after the restore until an operator runs `petrel resume`. */
  readonly drill: boolean;
  readonly openRedis: (options: {
    readonly target: RedisTarget;
    readonly keys: Keys;
    readonly name: string;
    readonly onError: (error: Error) => void;
  }) => Opened;
  /** Throws if the secrets do not match the check values that the installation recorded. */
  readonly compare: (noted: ReadonlyMap<string, string>, partitions: number, secrets: Secrets) => void;
  readonly say: (line: string) => void;
}

const openMsMax = 30_000;

/**
 * Checks that the settings match the backup. Throws a StartError for different keys, and a BackupError if the program
 * is older than the backup.
 */
function checkSettings(manifest: Manifest, config: Config, compare: RestoreOptions['compare']): void {
  const { TOKEN_PEPPER, TOKEN_KEYS, PARTITIONS } = requireSettings(config, ['TOKEN_PEPPER', 'TOKEN_KEYS']);
  compare(
    new Map(Object.entries(manifest.installation)),
    PARTITIONS,
    createSecrets(TOKEN_PEPPER, TOKEN_KEYS),
  );
  if (manifest.schema > schemaVersion())
    throw new BackupError(
      `the backup has schema ${manifest.schema}, but this program knows only ${schemaVersion()}: restore it with version ${manifest.version}`,
    );
}

interface Target {
  readonly name: string;
  readonly url: string;
  readonly saved: SavedDatabase;
}

/**
 * Pairs each saved database with the database in the settings into which it is restored. Throws a BackupError if
 * DATABASE_SHARDS and the backup have different shards.
 */
function targetsOf(manifest: Manifest, url: string, shards: Config['DATABASE_SHARDS']): Target[] {
  const ids = (all: ReadonlyArray<{ readonly id: number }>) => all.map(({ id }) => id).join(', ') || 'none';
  if (ids(shards) !== ids(manifest.shards))
    throw new BackupError(
      `the backup has the shards ${ids(manifest.shards)}, but DATABASE_SHARDS has ${ids(shards)}`,
    );
  return [
    { name: 'DATABASE_URL', url, saved: manifest },
    ...shards.map((shard, i) => ({
      ...{ name: `DATABASE_SHARDS ${shard.id}`, url: shard.url },
      saved: manifest.shards[i] as SavedDatabase,
    })),
  ];
}

async function restorePostgres({ url, saved }: Target, folder: string, manifest: Manifest): Promise<void> {
  await migrate(url, () => {}, undefined, manifest.schema);
  const tables = saved.tables.map((table) => ({
    ...table,
    open: () => [createReadStream(join(folder, table.file)), createGunzip()] as const,
  }));
  await copyIn(url, tables, saved.sequences);
  await migrate(url);
}

/**
 * Loads the file of one Redis master into a temporary server. Then copies each key to the server that now holds its
 * partition.
 */
async function restoreServer(
  file: string,
  servers: RedisServers,
  keys: Keys,
): Promise<{ copied: number; left: number }> {
  const partitions = new Map(keys.partitions.slots.map((_, i) => [keys.partitions.tag(i), i]));
  const placeOf = (key: string): RedisConnection | null => {
    const partition = partitions.get(key.slice(0, key.indexOf('}') + 1));
    return partition === undefined ? null : servers.at(partition);
  };
  const dir = mkdtempSync(join(tmpdir(), 'petrel-restore-'));
  try {
    copyFileSync(file, join(dir, 'dump.rdb'));
    const server = await startRedis({ dir, appendonly: false, detached: false });
    const connection = new RedisConnection({ url: server.url, name: 'restore' });
    try {
      await connection.ready(openMsMax);
      return await copyKeys(connection, placeOf);
    } finally {
      await connection.close();
      await server.stop();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Gives the restored installation a new id and returns it. Nodes of the original installation refuse the new id. */
async function rename(
  url: string,
  shards: Config['DATABASE_SHARDS'],
  withRedis: boolean,
  drill: boolean,
): Promise<string> {
  const over = async <T>(at: string, work: (pool: Pool) => Promise<T>): Promise<T> => {
    const pool = createPool({ url: at, max: 1, name: 'restore' });
    return work(pool).finally(() => pool.close());
  };
  const installation = await over(url, async (pool) => {
    // A drill pauses outgoing requests. Any other restore ends this pause, in case the backup was made during a drill
    // and contains the pause.
    await holdOutgoing(pool, drill);
    return renameInstallation(pool, withRedis ? 1 : 0);
  });
  for (const { id, url: at } of shards) await over(at, (pool) => renameShard(pool, id, installation));
  return installation;
}

async function renameRedis(servers: RedisServers, keys: Keys, id: string): Promise<void> {
  const at = (partition: number) => servers.at(partition)?.client;
  for (let partition = 0; partition < keys.partitions.count; partition++)
    await at(partition)?.hset(keys.meta(partition), 'of', id);
  await at(0)?.hset(keys.installation(), { ID: id, GENERATION: 1 });
}

const notEmpty = {
  restored: 'the Redis to restore into is not empty',
  beside:
    'the Redis of REDIS_URL is not empty: its data is newer than the backup and would override it; ' +
    'empty it (FLUSHALL on each server), or restore it too',
} as const;

/** Opens the installation's Redis, which must be empty. Throws a BackupError or a RedisCheckError. */
async function openTarget(
  config: Config,
  keys: Keys,
  openRedis: RestoreOptions['openRedis'],
  refusal: string,
): Promise<Opened> {
  const target = redisOf(config);
  await checkRedis(target, openMsMax);
  const opened = openRedis({ target, keys, name: 'restore', onError: () => {} });
  try {
    await opened.connection.ready(openMsMax);
    for (const node of opened.connection.nodes())
      if ((await countKeys(node)) > 0) throw new BackupError(refusal);
    return opened;
  } catch (error) {
    await closeTarget(opened);
    throw error;
  }
}

async function closeTarget({ connection, hints }: Opened): Promise<void> {
  hints.close();
  await connection.close();
}

/**
 * Restores a backup. During the restore, no other process may use Redis or Postgres. Throws a BackupError, a StartError
 * for different keys, a RedisCheckError, or an error of Redis or Postgres.
 */
export async function restore(
  config: Config,
  folder: string,
  { redis, drill, say, openRedis, compare }: RestoreOptions,
): Promise<void> {
  const { DATABASE_URL } = requireSettings(config, ['DATABASE_URL']);
  const manifest = await readManifest(folder);
  checkSettings(manifest, config, compare);
  const targets = targetsOf(manifest, DATABASE_URL, config.DATABASE_SHARDS);
  const keys = makeKeys(config.PARTITIONS);
  // Checks both Redis and Postgres before it fills either.
  const fills = redis && manifest.redis.length > 0;
  const target = await openTarget(config, keys, openRedis, fills ? notEmpty.restored : notEmpty.beside);
  try {
    for (const { name, url } of targets)
      if (!(await isEmpty(url))) throw new BackupError(`the database of ${name} is not empty`);
    for (const each of targets) await restorePostgres(each, folder, manifest);
    const tables = targets.flatMap(({ saved }) => saved.tables);
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    say(`postgres     ${tables.length} tables, ${rows} rows, schema ${schemaVersion()}`);
    const id = await rename(DATABASE_URL, config.DATABASE_SHARDS, fills, drill);
    if (!fills) say('redis        nothing: pending updates and kept answers are not restored');
    else {
      const done = { copied: 0, left: 0 };
      for (const name of manifest.redis) {
        const { copied, left } = await restoreServer(join(folder, name), target.connection, keys);
        done.copied += copied;
        done.left += left;
      }
      await renameRedis(target.connection, keys, id);
      say(
        `redis        ${done.copied} keys${done.left > 0 ? `; ${done.left} keys of other programs were left out` : ''}`,
      );
    }
  } finally {
    await closeTarget(target);
  }
  if (drill) say('drill        nothing is sent to webhooks and browsers until "petrel resume"');
  say(`restored     as of ${manifest.made_at}; uploaded files are not part of it`);
}

/**
 * Saves a running installation to a folder (task `backup`). Redis is saved first, so that Postgres in the backup is
 * never older than Redis. The restore relies on this order: if Postgres has a later version of an entity, the restore
 * drops the entity from Redis. If Postgres was saved first, changes that were flushed between the two saves would be
 * only in Redis, and would expire there.
 */

import { createWriteStream, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createGzip } from 'node:zlib';
import { environmentOf } from '../config/config.js';
import { version } from '../config/version.js';
import { openSnapshot, type Snapshot } from '../postgres/copy.js';
import { appliedVersion } from '../postgres/migrate.js';
import type { Pool } from '../postgres/pool.js';
import { loadMove } from '../postgres/shard_moves.js';
import { loadEpoch } from '../postgres/shards.js';
import type { RedisServers } from '../redis/connection.js';
import { saveRdb } from '../redis/copy.js';
import { systemTime } from '../time.js';
import { BackupError, describeFile, type Manifest, type SavedDatabase, writeManifest } from './manifest.js';

export interface BackupSource {
  readonly control: Pool;
  readonly databaseUrl: string;
  readonly shards: ReadonlyArray<{ readonly id: number; readonly url: string }>;
  readonly connection: RedisServers;
  readonly partitions: number;
}

export interface BackupOptions {
  /** Whether to save Redis. Pending updates, open button presses and stored answers are only in Redis. */
  readonly redis: boolean;
  readonly say: (line: string) => void;
}

function openFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (readdirSync(folder).length > 0) throw new BackupError(`${folder} is not empty`);
}

/** Returns check values, which identify keys and peppers without revealing them. */
async function checkValues(snapshot: Snapshot): Promise<Record<string, string>> {
  const all = Object.entries(await snapshot.installation());
  return Object.fromEntries(all.filter(([name]) => /^(PARTITIONS|TOKEN_PEPPER|TOKEN_KEYS .+)$/.test(name)));
}

async function saveRedis({ connection }: BackupSource, folder: string): Promise<string[]> {
  const names: string[] = [];
  const path = environmentOf(['PATH']).PATH ?? '';
  // Opens all snapshots at the same time, so that they show nearly the same state.
  await Promise.all(
    connection.nodes().map((node, i) => {
      const name = `redis-${i}.rdb`;
      names.push(name);
      return saveRdb(node, join(folder, name), path);
    }),
  );
  return names;
}

/**
 * Returns the epoch of the shard map. Throws a BackupError while partitions are moved, because their rows are then
 * spread over two databases.
 */
async function stillEpoch(control: Pool): Promise<number> {
  if ((await loadMove(control)) === null) return loadEpoch(control);
  throw new BackupError('partitions are moving to another database: see "petrel shards list"');
}

async function saveDatabase(snapshot: Snapshot, folder: string, prefix: string): Promise<SavedDatabase> {
  const tables: SavedDatabase['tables'] = [];
  for (const table of await snapshot.tables()) {
    const file = `${prefix}${table.name}.copy.gz`;
    const out = createWriteStream(join(folder, file), { mode: 0o600 });
    const rows = await snapshot.copyOut(table, [createGzip({ level: 4 }), out]);
    tables.push({ name: table.name, columns: [...table.columns], rows, file });
  }
  return { tables, sequences: await snapshot.sequences() };
}

/**
 * Saves the installation. After a failure, the saved files stay in the folder, but without a manifest. Throws a
 * BackupError, a CopyError, or an error of Postgres.
 */
export async function backup(
  source: BackupSource,
  folder: string,
  { redis, say }: BackupOptions,
  time = systemTime,
): Promise<Manifest> {
  const epoch = await stillEpoch(source.control);
  openFolder(folder);
  const url = source.databaseUrl;
  const rdbs = redis ? await saveRedis(source, folder) : [];
  if (redis) say(`redis        ${rdbs.length === 1 ? 'one server' : `${rdbs.length} masters`}`);
  const snapshots: Snapshot[] = [];
  try {
    // Opens all snapshots at the same time, so that they show nearly the same state.
    const snapshot = await openSnapshot(url);
    snapshots.push(snapshot);
    for (const shard of source.shards) snapshots.push(await openSnapshot(shard.url));
    if ((await stillEpoch(source.control)) !== epoch)
      throw new BackupError(
        'partitions moved to another database meanwhile: run it again into an empty folder',
      );
    const control = await saveDatabase(snapshot, folder, '');
    const shards: Manifest['shards'] = [];
    for (const [i, { id }] of source.shards.entries()) {
      const saved = await saveDatabase(snapshots[i + 1] as Snapshot, folder, `shard-${id}-`);
      shards.push({ id, ...saved });
    }
    const tables = [control, ...shards].flatMap((saved) => saved.tables);
    const names = [...rdbs, ...tables.map(({ file }) => file)];
    const manifest: Manifest = {
      format: 1,
      made_at: new Date(time.machine()).toISOString(),
      version,
      schema: await appliedVersion(url),
      partitions: source.partitions,
      installation: await checkValues(snapshot),
      ...control,
      shards,
      redis: rdbs,
      files: await Promise.all(names.map((name) => describeFile(folder, name))),
    };
    writeManifest(folder, manifest);
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    const bytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
    const where = shards.length === 0 ? '' : ` in ${1 + shards.length} databases`;
    say(`postgres     ${tables.length} tables${where}, ${rows} rows, schema ${manifest.schema}`);
    say(`written      ${folder}, ${Math.ceil(bytes / 1024)} KiB`);
    return manifest;
  } finally {
    await Promise.all(snapshots.map((snapshot) => snapshot.close()));
  }
}

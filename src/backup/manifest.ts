/**
 * Defines the manifest of a backup. The manifest is written last. A folder without a manifest is not a complete backup.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const file = z.object({ name: z.string(), sha256: z.string(), bytes: z.number() });

const database = z.object({
  tables: z.array(
    z.object({ name: z.string(), columns: z.array(z.string()), rows: z.number(), file: z.string() }),
  ),
  sequences: z.array(z.object({ name: z.string(), last: z.string(), called: z.boolean() })),
});

export type SavedDatabase = z.infer<typeof database>;

const schema = database.extend({
  format: z.literal(1),
  made_at: z.string(),
  version: z.string(),
  schema: z.number(),
  partitions: z.number(),
  /**
   * The installation's ids, and check values of its keys and peppers. An installation must have the same values to
   * restore this backup.
   */
  installation: z.record(z.string(), z.string()),
  shards: z.array(database.extend({ id: z.number() })).default([]),
  /** The names of the Redis files, one for each master. Empty if the backup does not contain Redis. */
  redis: z.array(z.string()),
  files: z.array(file),
});

export type Manifest = z.infer<typeof schema>;

/** Thrown when a backup cannot be made or restored. The message tells the operator why. */
export class BackupError extends Error {}

const manifestName = 'manifest.json';

export async function describeFile(folder: string, name: string): Promise<Manifest['files'][number]> {
  const sum = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(join(folder, name))) {
    sum.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { name, sha256: sum.digest('hex'), bytes };
}

export function writeManifest(folder: string, manifest: Manifest): void {
  writeFileSync(join(folder, manifestName), `${JSON.stringify(manifest, null, 1)}\n`, { mode: 0o600 });
}

export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, manifestName);
  if (!existsSync(path)) throw new BackupError(`${folder} is not a backup: ${manifestName} is missing`);
  const parsed = schema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  if (!parsed.success) throw new BackupError(`${path} has a format that this version cannot restore`);
  for (const known of parsed.data.files) {
    const found = existsSync(join(folder, known.name)) ? await describeFile(folder, known.name) : null;
    if (found?.sha256 !== known.sha256)
      throw new BackupError(`${known.name} is ${found === null ? 'missing' : 'damaged'}`);
  }
  return parsed.data;
}

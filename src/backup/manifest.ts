/** What a backup consists of, written last: a folder without it is no backup. */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const file = z.object({ name: z.string(), sha256: z.string(), bytes: z.number() });

/** What was saved of a database. */
const database = z.object({
  tables: z.array(
    z.object({ name: z.string(), columns: z.array(z.string()), rows: z.number(), file: z.string() }),
  ),
  sequences: z.array(z.object({ name: z.string(), last: z.string(), called: z.boolean() })),
});

export type SavedDatabase = z.infer<typeof database>;

const schema = database.extend({
  /** of this description */
  format: z.literal(1),
  made_at: z.string(),
  /** of the program that made it */
  version: z.string(),
  /** of the database */
  schema: z.number(),
  partitions: z.number(),
  /** ids and check values of keys and peppers: what must be set where it is restored */
  installation: z.record(z.string(), z.string()),
  /** the databases of DATABASE_SHARDS */
  shards: z.array(database.extend({ id: z.number() })).default([]),
  /** one a master; none where Redis was left out */
  redis: z.array(z.string()),
  files: z.array(file),
});

export type Manifest = z.infer<typeof schema>;

/** A backup that cannot be made or used; the message is for the person who runs it. */
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

/** Reads the manifest and holds every file against it. Throws a BackupError. */
export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, manifestName);
  if (!existsSync(path)) throw new BackupError(`${folder} holds no backup: ${manifestName} is missing`);
  const parsed = schema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  if (!parsed.success) throw new BackupError(`${path} is not of a kind that this version can restore`);
  for (const known of parsed.data.files) {
    const found = existsSync(join(folder, known.name)) ? await describeFile(folder, known.name) : null;
    if (found?.sha256 !== known.sha256)
      throw new BackupError(`${known.name} is ${found === null ? 'missing' : 'not what was saved'}`);
  }
  return parsed.data;
}

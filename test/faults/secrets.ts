/**
 * Searches for secrets in places where none may be stored: the memory and the append-only file of Redis, every column
 * of Postgres, and the logs of roles.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import pg from 'pg';
import { openMasters } from '../support/cluster.js';
import type { Service } from '../support/service.js';

/** Returns the places where secrets were found, each with the first characters of the secret. */
export async function findSecrets(
  service: Service,
  secrets: readonly string[],
  folders: readonly string[],
): Promise<{ readonly found: readonly string[]; readonly searched: Readonly<Record<string, number>> }> {
  const found: string[] = [];
  const searched = { keys: 0, rows: 0, fileBytes: 0, logChars: 0 };
  const look = (place: string, bytes: Buffer | string) => {
    for (const secret of secrets) if (bytes.includes(secret)) found.push(`${place}: ${secret.slice(0, 12)}…`);
  };

  for (const redis of openMasters(service.redis)) {
    for await (const keys of redis.scanStream({ count: 1_000 })) {
      for (const key of keys as string[]) {
        searched.keys++;
        look(`key ${key}`, key);
        for (const part of await contents(redis, key)) look(`key ${key}`, part);
      }
    }
    redis.disconnect();
  }

  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  const tables = await client.query<{ name: string }>(
    "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'",
  );
  for (const { name } of tables.rows) {
    const { rows } = await client.query(`select * from ${name}`);
    for (const row of rows) {
      searched.rows++;
      for (const value of Object.values(row))
        look(`table ${name}`, Buffer.isBuffer(value) ? value : (JSON.stringify(value) ?? ''));
    }
  }
  await client.end();

  for (const folder of folders) {
    for (const name of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!name.isFile()) continue;
      const path = join(name.parentPath, name.name);
      const bytes = readFileSync(path);
      searched.fileBytes += bytes.length;
      look(`file ${name.name}`, bytes);
    }
  }
  for (const role of [...service.fronts, service.deliver, service.flush]) {
    searched.logChars += role.log().length;
    look(`log of ${role.role}`, role.log());
  }
  return { found, searched };
}

/** Returns the contents of a key. Reads each type with its own command, because values in a DUMP may be compressed. */
async function contents(redis: Redis, key: string): Promise<Buffer[]> {
  const flat = (value: unknown): Buffer[] =>
    Array.isArray(value)
      ? value.flatMap(flat)
      : [Buffer.isBuffer(value) ? value : Buffer.from(String(value))];
  switch (await redis.type(key)) {
    case 'string':
      return flat(await redis.getBuffer(key));
    case 'hash':
      return flat([await redis.hkeysBuffer(key), await redis.hvalsBuffer(key)]);
    case 'stream':
      return flat(await redis.xrangeBuffer(key, '-', '+'));
    case 'list':
      return flat(await redis.lrangeBuffer(key, 0, -1));
    case 'set':
      return flat(await redis.smembersBuffer(key));
    case 'zset':
      return flat(await redis.zrangeBuffer(key, '0', '-1'));
    default:
      return [];
  }
}

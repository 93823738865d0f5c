/**
 * Reads the contents of an installation's database, and creates the settings of an installation into which a backup is
 * restored.
 */
import pg from 'pg';
import { redisSettings } from '../support/environment.js';
import type { FreshRedis } from '../support/servers.js';

export function elsewhere(
  env: Readonly<Record<string, string>>,
  redis: FreshRedis,
  databaseUrl: string,
): Record<string, string> {
  const { REDIS_URL: _, REDIS_CLUSTER: __, REDIS_SENTINELS: ___, ...others } = env;
  return { ...others, ...redisSettings(redis), DATABASE_URL: databaseUrl };
}

/** Returns every row of every table as text, and the positions of sequences. */
export async function contentOf(url: string): Promise<Map<string, string[]>> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows: tables } = await client.query(
      // Rows of partitions are read through their parent table.
      `select relname as name from pg_class
        where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
    );
    const content = new Map<string, string[]>();
    for (const { name } of tables) {
      if (/^(schema_migrations|redis_nodes|shard_nodes)$/.test(name)) continue;
      const { rows } = await client.query(
        // Omits the rows ID and REDIS_GENERATION, which differ because the copy is a separate installation.
        `select t::text as row from "${name}" t ${name === 'installation' ? "where name not in ('ID', 'REDIS_GENERATION')" : ''} order by 1`,
      );
      content.set(
        name,
        rows.map(({ row }) => row),
      );
    }
    const { rows } = await client.query(
      'select sequencename as name, last_value::text as last from pg_sequences',
    );
    content.set('sequences', rows.map(({ name, last }) => `${name} ${last}`).sort());
    return content;
  } finally {
    await client.end();
  }
}

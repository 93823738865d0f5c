/**
 * Provides databases for tests with several shards. Each database has either the control tables or the sharded tables,
 * so a statement on the wrong kind of table fails.
 */
import pg from 'pg';
import { createPool, type Pool } from '../../src/postgres/pool.js';
import {
  changeMap,
  followShards,
  loadMap,
  type Shard,
  type Shards,
  shardedTables,
} from '../../src/postgres/shards.js';
import { asDatabase, type ShardDatabase } from '../../src/postgres/sql.js';
import { migratedDatabase } from './servers.js';

const everywhere = ['control_marks', 'control_requests', 'installation', 'schema_migrations'];

async function dropTables(url: string, which: (table: string) => boolean): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  for (const { name } of rows) if (which(name)) await client.query(`drop table "${name}" cascade`);
  await client.end();
}

export interface ShardDatabases {
  readonly urls: readonly string[];
  drop(): Promise<void>;
}

/**
 * Removes the sharded tables from this control database, makes `count` shards with these tables, and spreads the
 * partitions over the shards.
 */
export async function divideDatabase(
  controlUrl: string,
  count: number,
  partitions: number,
): Promise<ShardDatabases> {
  const made = await Promise.all(Array.from({ length: count }, () => migratedDatabase()));
  for (const { url } of made) {
    await dropTables(url, (table) => !(table in shardedTables) && !everywhere.includes(table));
  }
  await dropTables(controlUrl, (table) => table in shardedTables);
  const pool = createPool({ url: controlUrl, max: 1, name: 'test' });
  await changeMap(
    pool,
    Array.from({ length: partitions }, (_, partition) => ({
      ...{ partition, paused: false },
      shard: 1 + (partition % count),
    })),
  );
  await pool.close();
  return {
    urls: made.map(({ url }) => url),
    drop: async () => void (await Promise.all(made.map((each) => each.drop()))),
  };
}

export interface OpenShards {
  readonly shards: Shards;
  close(): Promise<void>;
}

/** Opens a node’s connections to these shards, including the control database. */
export async function openTestShards(
  control: { readonly pool: Pool; readonly db: ShardDatabase },
  urls: readonly string[],
  partitions: number,
  hooked: (db: ShardDatabase) => ShardDatabase = (db) => db,
): Promise<OpenShards> {
  const others = urls.map((url, i): Shard => {
    const pool = createPool({ url, max: 4, name: 'test' });
    return { id: i + 1, url, pool, db: hooked(asDatabase(pool)) };
  });
  const at = performance.now();
  const map = await loadMap(control.pool);
  const all = [{ id: 0, url: '', ...control }, ...others];
  const shards = followShards({ all, partitions, map, at, onError: () => undefined });
  return {
    shards,
    async close() {
      await shards.stop();
      await Promise.all(others.map(({ pool }) => pool.close()));
    },
  };
}

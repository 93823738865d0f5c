/** Reads how many bytes Redis and Postgres have written to disk, and how large the Postgres data are. */
import { createPool } from '../../src/postgres/pool.js';
import { asDatabase } from '../../src/postgres/sql.js';
import type { RedisWatch } from './redis_watch.js';
import type { Service } from './service.js';

export interface DiskWrites {
  /** The size of the append-only file, in bytes. The file is never rewritten during a run. */
  readonly redis: number;
  readonly postgres: number;
  readonly stored: number;
}

export async function readDiskWrites({ databaseUrl }: Service, { client }: RedisWatch): Promise<DiskWrites> {
  const pool = createPool({ url: databaseUrl, max: 1, name: 'bench', onError: () => undefined });
  try {
    const [row] = await asDatabase(pool).query<{ wal: string; stored: string }>(
      `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as wal, pg_database_size(current_database()) as stored`,
      [],
    );
    const [, redis = 0] = /^aof_current_size:(\d+)/m.exec(await client.info('persistence')) ?? [];
    return { redis: Number(redis), postgres: Number(row?.wal), stored: Number(row?.stored) };
  } finally {
    await pool.close();
  }
}

export const diskWritesBetween = (before: DiskWrites, after: DiskWrites, calls: number) => ({
  redis: (after.redis - before.redis) / calls,
  postgres: (after.postgres - before.postgres) / calls,
});

/**
 * Reads from standbys of Postgres. Each read checks in its own snapshot that the standby has already replayed the
 * changes that the caller needs. If it has not, the read is repeated on the primary.
 */
import { type Random, systemRandom } from '../random.js';
import { systemTime, type Time } from '../time.js';
import { postgresLimits as limits } from './limits.js';
import { createPool, type Pool, statement } from './pool.js';
import { checked, plainSql, type Sql, sqlOver } from './sql.js';

export interface Replicas {
  /**
   * Runs a read of a partition's flushed tables, on a standby if possible. `flushed` is the version up to which the
   * partition was flushed, according to the last answer from Redis, or null if unknown. `read` may run twice, on a
   * standby of the shard and then on the primary. Throws the errors of the primary.
   */
  read<T>(
    shard: number,
    primary: Sql,
    partition: number,
    flushed: number | null,
    read: (sql: Sql) => Promise<T>,
  ): Promise<T>;
  /**
   * How many reads a standby answered (`replica`), and how many the primary answered because the standby was behind or
   * failed.
   */
  readonly counts: { readonly replica: number; readonly behind: number; readonly failed: number };
  close(): Promise<void>;
}

export const noReplicas: Replicas = {
  read: (_shard, primary, _partition, _flushed, read) => read(primary),
  counts: { replica: 0, behind: 0, failed: 0 },
  close: async () => {},
};

export interface Standby {
  /** The id of the shard that the standby replicates. 0 is the control database. */
  readonly shard: number;
  readonly url: string;
}

export interface ReplicasOptions {
  readonly standbys: readonly Standby[];
  readonly max: number;
  readonly name: string;
  readonly onError: (error: Error) => void;
  readonly time?: Time;
  readonly random?: Random;
}

const isBehind = (error: unknown) => (error as { code?: string }).code === 'PTL02';

interface Replica {
  readonly shard: number;
  readonly pool: Pool;
  away: boolean;
}

/** Creates the replicas. They connect at the first read. */
export function createReplicas(options: ReplicasOptions): Replicas {
  const { standbys, max, name, onError, time = systemTime, random = systemRandom } = options;
  const replicas: Replica[] = standbys.map(({ shard, url }) => ({
    shard,
    pool: createPool({ url, max, name: `${name}-replica`, standby: true, onError, time, random }),
    away: false,
  }));
  const counts = { replica: 0, behind: 0, failed: 0 };
  let turn = 0;
  let closed = false;

  /** Stops using a failed standby, so that no read waits for it. A background check later makes it available again. */
  function rest(replica: Replica): void {
    if (replica.away) return;
    replica.away = true;
    const again = () =>
      time
        .after(limits.postgres_replica_rest_ms, async () => {
          if (closed) return;
          try {
            await replica.pool.query(statement('replica_answers', 'select 1'));
            replica.away = false;
          } catch {
            again();
          }
        })
        .unref();
    again();
  }

  const over = ({ pool }: Replica, partition: number, flushed: number): Sql =>
    sqlOver((query, params = []) => {
      const count = params.length;
      const text = checked(query, `require_replayed($${count + 1}, $${count + 2})`);
      return plainSql(pool).query(text, [...params, partition, flushed]);
    });

  return {
    counts,
    async read(shard, primary, partition, flushed, read) {
      const present = replicas.filter((each) => each.shard === shard && !each.away);
      const replica = present[turn++ % Math.max(1, present.length)];
      if (replica === undefined || flushed === null) return read(primary);
      try {
        const result = await read(over(replica, partition, flushed));
        counts.replica++;
        return result;
      } catch (error) {
        if (isBehind(error)) counts.behind++;
        else {
          counts.failed++;
          rest(replica);
          onError(error as Error);
        }
        return read(primary);
      }
    },
    async close() {
      closed = true;
      await Promise.all(replicas.map(({ pool }) => pool.close()));
    },
  };
}

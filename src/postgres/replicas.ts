/**
 * Reads from standbys of Postgres. Each read first checks, in its own transaction, that the standby has replayed the
 * changes its caller needs; otherwise it goes to the primary.
 */
import { createHash } from 'node:crypto';
import { limits } from '../limits.js';
import { createPool, type Pool, statement } from './pool.js';
import type { Sql } from './sql.js';

export interface Replicas {
  /**
   * Runs a read of a partition's written-behind tables. `flushed` is the version up to which the partition was
   * flushed when Redis was last asked, null if unknown. `read` may run twice: on a standby, and then on the primary.
   * Errors: those of the primary.
   */
  read<T>(
    primary: Sql,
    partition: number,
    flushed: number | null,
    read: (sql: Sql) => Promise<T>,
  ): Promise<T>;
  /**
   * Number of reads by outcome since the start: answered by a standby, or by the primary because a standby was behind
   * or failed.
   */
  readonly counts: { readonly replica: number; readonly behind: number; readonly failed: number };
  close(): Promise<void>;
}

/** Replicas of an installation that has no standby. */
export const noReplicas: Replicas = {
  read: (primary, _partition, _flushed, read) => read(primary),
  counts: { replica: 0, behind: 0, failed: 0 },
  close: async () => {},
};

export interface ReplicasOptions {
  readonly urls: readonly string[];
  /** The greatest number of connections to each standby. */
  readonly max: number;
  readonly name: string;
  readonly onError: (error: Error) => void;
}

const requireReplayed = statement('require_replayed', 'select require_replayed($1, $2)');
const isBehind = (error: unknown) => (error as { code?: string }).code === 'PTL02';

interface Replica {
  readonly pool: Pool;
  away: boolean;
}

/** Creates the replicas. They connect with the first read. */
export function createReplicas({ urls, max, name, onError }: ReplicasOptions): Replicas {
  const replicas: Replica[] = urls.map((url) => ({
    pool: createPool({ url, max, name: `${name}-replica`, standby: true, onError }),
    away: false,
  }));
  const counts = { replica: 0, behind: 0, failed: 0 };
  let turn = 0;
  let closed = false;

  /** Sets a standby that failed aside, so that no read waits for it; a background check brings it back. */
  function rest(replica: Replica): void {
    if (replica.away) return;
    replica.away = true;
    const again = () =>
      setTimeout(async () => {
        if (closed) return;
        try {
          await replica.pool.query(statement('replica_answers', 'select 1'));
          replica.away = false;
        } catch {
          again();
        }
      }, limits.postgres_replica_rest_ms).unref();
    again();
  }

  const over = ({ pool }: Replica, partition: number, flushed: number): Sql => ({
    query: <T>(text: string, params: readonly unknown[] = []) =>
      pool.batch([
        { statement: requireReplayed, values: [partition, flushed] },
        { statement: statement(createHash('sha1').update(text).digest('base64url'), text), values: params },
      ]) as Promise<T[]>,
  });

  return {
    counts,
    async read(primary, partition, flushed, read) {
      const present = replicas.filter(({ away }) => !away);
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

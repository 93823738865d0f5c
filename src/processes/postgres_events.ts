/** Logs and counts losses of Postgres transactions and replacements of Postgres servers. */

import type { History, WentBack } from '../journal/history.js';
import type { Logger } from '../obs/log.js';
import { type Figure, figuresOf } from '../obs/metrics.js';
import type { Replicas } from '../postgres/replicas.js';
import { systemTime } from '../time.js';

export interface PostgresEvents {
  back(found: WentBack, shard: number): void;
  elsewhere(before: string, now: string, shard: number): void;
  replaced(why: string, shard: number): void;
  readonly stats: { readonly wentBack: number; readonly transactions: number; readonly refused: number };
}

/**
 * The minimum time between two log lines about a replaced server, in ms. Every new connection detects the replacement
 * again.
 */
const log_interval_ms = 10_000;

export function reportPostgres(log: Pick<Logger, 'error' | 'warn'>, time = systemTime): PostgresEvents {
  const stats = { wentBack: 0, transactions: 0, refused: 0 };
  let loggedAt = Number.NEGATIVE_INFINITY;
  return {
    stats,
    back(found, shard) {
      stats.wentBack++;
      stats.transactions += found.transactions;
      log.error(
        { ...found, ...(shard === 0 ? {} : { shard }) },
        'Postgres lost committed transactions. Petrel has repeated the lost revocations and does not reuse lost ids. ' +
          'Messages and posts that Redis still has are written again. Other changes of these transactions are lost',
      );
    },
    replaced(why, shard) {
      stats.refused++;
      if (time.monotonic() - loggedAt < log_interval_ms) return;
      loggedAt = time.monotonic();
      log.error({ ...(shard === 0 ? {} : { shard }) }, why);
    },
    elsewhere(before, now, shard) {
      log.warn(
        { before, now, ...(shard === 0 ? {} : { shard }) },
        'Postgres failed over to another server, which has all committed transactions',
      );
    },
  };
}

export const postgresFigures = (
  { stats }: PostgresEvents,
  databases: ReadonlyArray<{ readonly history: Pick<History, 'rewriting'> }>,
  { counts }: Pick<Replicas, 'counts'>,
): Figure[] =>
  figuresOf(
    {
      petrel_postgres_replica_reads_total: 'Reads of cold messages answered by a Postgres standby.',
      petrel_postgres_replica_fallbacks_total:
        'Reads of cold messages answered by the primary because a standby was behind or unavailable.',
      petrel_postgres_went_back_total:
        'How often this process found and repaired a Postgres that had lost committed transactions.',
      petrel_postgres_lost_transactions_total:
        'Committed transactions that Postgres had lost, by the marks in Redis.',
      petrel_postgres_replaced_refused_total:
        'Connections and changes refused because they went to a Postgres server that has been replaced.',
      petrel_postgres_rewriting_partitions:
        'Partitions whose hot entities are being written to Postgres again.',
    },
    () => ({
      petrel_postgres_replica_reads_total: counts.replica,
      petrel_postgres_replica_fallbacks_total: counts.behind + counts.failed,
      petrel_postgres_went_back_total: stats.wentBack,
      petrel_postgres_lost_transactions_total: stats.transactions,
      petrel_postgres_replaced_refused_total: stats.refused,
      petrel_postgres_rewriting_partitions: databases.reduce(
        (sum, { history }) => sum + history.rewriting(),
        0,
      ),
    }),
  );

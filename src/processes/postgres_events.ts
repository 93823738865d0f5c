/** Tells whoever runs it that Postgres went back in time, or is another server than before. */
import type { History, WentBack } from '../journal/history.js';
import type { Logger } from '../obs/log.js';
import { counter, type Figure, gauge } from '../obs/metrics.js';
import type { Replicas } from '../postgres/replicas.js';

export interface PostgresEvents {
  /** `shard` is 0 for the control database. */
  back(found: WentBack, shard: number): void;
  elsewhere(before: string, now: string, shard: number): void;
  replaced(why: string, shard: number): void;
  readonly stats: { readonly wentBack: number; readonly transactions: number; readonly refused: number };
}

/** Each new connection meets the same server. */
const told_ms_min = 10_000;

export function tellPostgres(log: Pick<Logger, 'error' | 'warn'>): PostgresEvents {
  const stats = { wentBack: 0, transactions: 0, refused: 0 };
  let told = Number.NEGATIVE_INFINITY;
  return {
    stats,
    back(found, shard) {
      stats.wentBack++;
      stats.transactions += found.transactions;
      log.error(
        { ...found, ...(shard === 0 ? {} : { shard }) },
        'Postgres went back in time: it lost transactions that it had committed. Revocations were made again, no id comes twice, ' +
          'and what Redis still holds of messages and posts is written again; other changes of these transactions are lost',
      );
    },
    replaced(why, shard) {
      stats.refused++;
      if (performance.now() - told < told_ms_min) return;
      told = performance.now();
      log.error({ ...(shard === 0 ? {} : { shard }) }, why);
    },
    elsewhere(before, now, shard) {
      log.warn(
        { before, now, ...(shard === 0 ? {} : { shard }) },
        'Postgres is another server than before, and has all that was committed',
      );
    },
  };
}

/** What metrics tell of both. */
export const postgresFigures = (
  { stats }: PostgresEvents,
  histories: ReadonlyArray<Pick<History, 'rewriting'>>,
  { counts }: Pick<Replicas, 'counts'>,
): Figure[] => [
  counter(
    'petrel_postgres_replica_reads_total',
    'Reads of cold messages that a standby of Postgres answered.',
    () => counts.replica,
  ),
  counter(
    'petrel_postgres_replica_fallbacks_total',
    'Reads of cold messages that the primary answered because a standby was behind or away.',
    () => counts.behind + counts.failed,
  ),
  counter(
    'petrel_postgres_went_back_total',
    'Times that this process found a Postgres that had lost transactions, and put it right.',
    () => stats.wentBack,
  ),
  counter(
    'petrel_postgres_lost_transactions_total',
    'Transactions of which Redis knew and that such a Postgres no longer had.',
    () => stats.transactions,
  ),
  counter(
    'petrel_postgres_replaced_refused_total',
    'Connections and changes refused because another Postgres has replaced the one they came to.',
    () => stats.refused,
  ),
  gauge(
    'petrel_postgres_rewriting_partitions',
    'Partitions whose hot entities are being written to Postgres again.',
    () => histories.reduce((sum, history) => sum + history.rewriting(), 0),
  ),
];

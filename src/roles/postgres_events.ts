/** Tells whoever runs it that Postgres went back in time, or is another server than before. */
import type { History, WentBack } from '../journal/history.js';
import type { Logger } from '../obs/log.js';
import { counter, type Figure, gauge } from '../obs/metrics.js';

export interface PostgresEvents {
  back(found: WentBack): void;
  elsewhere(before: string, now: string): void;
  readonly stats: { readonly wentBack: number; readonly transactions: number };
}

export function tellPostgres(log: Pick<Logger, 'error' | 'warn'>): PostgresEvents {
  const stats = { wentBack: 0, transactions: 0 };
  return {
    stats,
    back(found) {
      stats.wentBack++;
      stats.transactions += found.transactions;
      log.error(
        { ...found },
        'Postgres went back in time: it lost transactions that it had committed. Revocations were made again, no id comes twice, ' +
          'and what Redis still holds of messages and posts is written again; other changes of these transactions are lost',
      );
    },
    elsewhere(before, now) {
      log.warn({ before, now }, 'Postgres is another server than before, and has all that was committed');
    },
  };
}

/** What metrics tell of both. */
export const postgresFigures = ({ stats }: PostgresEvents, history: Pick<History, 'rewriting'>): Figure[] => [
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
  gauge(
    'petrel_postgres_rewriting_partitions',
    'Partitions whose hot entities are being written to Postgres again.',
    () => history.rewriting(),
  ),
];

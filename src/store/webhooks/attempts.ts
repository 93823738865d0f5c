/**
 * Stores and loads webhook delivery attempts, which owners can see. They are only for diagnosis, so deliveries never
 * wait for them.
 */

import { loadOwnedSince } from '../../postgres/bots/bots.js';
import { byShard } from '../../postgres/shards.js';
import * as rows from '../../postgres/webhooks/attempts.js';
import { noteFailing } from '../../postgres/webhooks/failing.js';
import type { StoreContext } from '../core/context.js';

export type {
  AttemptCounts,
  AttemptRow,
  NewAttempt,
  RefusedAttempt,
} from '../../postgres/webhooks/attempts.js';

/** Reports that `append` failed in part. Only the attempts of the bots in this error were not stored. */
export class PartlyAppended extends Error {
  readonly bots: ReadonlySet<number>;
  readonly refused: readonly rows.RefusedAttempt[];

  constructor(bots: ReadonlySet<number>, refused: readonly rows.RefusedAttempt[], options: ErrorOptions) {
    super('a shard did not store attempts', options);
    this.bots = bots;
    this.refused = refused;
  }
}

export type Attempts = ReturnType<typeof createAttempts>;

export function createAttempts({ db, shards, keys }: StoreContext) {
  const partitionOf = (bot: number) => keys.partitions.of(bot);
  const shardOf = (bot: number) => shards.at(partitionOf(bot));
  return {
    /**
     * Stores attempts. Returns those whose data Postgres refuses. These are counted but not stored. Throws PartlyAppended
     * if only some shards failed. After any other error, nothing was stored.
     */
    async append(attempts: readonly rows.NewAttempt[], counts: ReadonlyMap<number, rows.AttemptCounts>) {
      const delivered = [...counts].filter(([, own]) => own.delivered > 0).map(([bot]) => bot);
      await noteFailing(db, delivered, rows.failuresOf(attempts, counts));
      const bots = byShard(shards, [...counts], ([bot]) => partitionOf(bot));
      const own = byShard(shards, attempts, ({ bot }) => partitionOf(bot));
      const refused: rows.RefusedAttempt[] = [];
      const left = new Set<number>();
      let cause: unknown;
      await Promise.all(
        [...bots].map(async ([shard, counted]) => {
          try {
            const partitions = new Set(counted.map(([bot]) => partitionOf(bot)));
            const found = await rows.appendAttempts(
              shards.at(...partitions),
              own.get(shard) ?? [],
              new Map(counted),
            );
            refused.push(...found);
          } catch (error) {
            cause = error;
            for (const [bot] of counted) left.add(bot);
          }
        }),
      );
      if (left.size === counts.size && left.size > 0) throw cause;
      if (left.size > 0) throw new PartlyAppended(left, refused, { cause });
      return refused;
    },
    async list(bot: number, filter: rows.AttemptFilter, before: number, limit: number) {
      const since = filter.ofOwner ? await loadOwnedSince(db, bot) : null;
      return rows.loadAttempts(shardOf(bot), bot, filter, before, limit, since);
    },
    counts: (bot: number) => rows.loadCounts(shardOf(bot), bot),
  };
}

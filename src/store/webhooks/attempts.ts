/** Webhook delivery attempts, shown to owners. They are only diagnostics: deliveries never wait for them. */

import { loadOwnedSince } from '../../postgres/bots/bots.js';
import { byShard } from '../../postgres/shards.js';
import {
  type AttemptCounts,
  type AttemptFilter,
  type AttemptRow,
  appendAttempts,
  failuresOf,
  loadAttempts,
  loadCounts,
  type NewAttempt,
  type RefusedAttempt,
} from '../../postgres/webhooks/attempts.js';
import { noteFailing } from '../../postgres/webhooks/failing.js';
import type { StoreContext } from '../core/context.js';

export type { AttemptCounts, AttemptRow, NewAttempt, RefusedAttempt };

/** Error of `append` when a shard failed: only the attempts of these bots were not stored. */
export class PartlyAppended extends Error {
  readonly bots: ReadonlySet<number>;
  /** Attempts of the other bots that Postgres refused. */
  readonly refused: readonly RefusedAttempt[];
  constructor(bots: ReadonlySet<number>, refused: readonly RefusedAttempt[], options: ErrorOptions) {
    super('a shard did not store attempts', options);
    this.bots = bots;
    this.refused = refused;
  }
}

export interface Attempts {
  /**
   * Stores attempts. Returns those that Postgres refuses because of their data: they are counted but not stored.
   * Errors: PartlyAppended; any other error means that nothing was stored.
   */
  append(
    attempts: readonly NewAttempt[],
    counts: ReadonlyMap<number, AttemptCounts>,
  ): Promise<readonly RefusedAttempt[]>;
  /** Attempts of a bot with ids below `before`, newest first. */
  list(bot: number, filter: AttemptFilter, before: number, limit: number): Promise<readonly AttemptRow[]>;
  /** Totals over all delivery attempts ever made for a bot. */
  counts(bot: number): Promise<AttemptCounts>;
}

export function createAttempts({ db, shards, keys }: StoreContext): Attempts {
  const partitionOf = (bot: number) => keys.partitions.of(bot);
  const shardOf = (bot: number) => shards.of(partitionOf(bot)).db;
  return {
    async append(attempts, counts) {
      const delivered = [...counts].filter(([, own]) => own.delivered > 0).map(([bot]) => bot);
      await noteFailing(db, delivered, failuresOf(attempts, counts));
      const bots = byShard(shards, [...counts], ([bot]) => partitionOf(bot));
      const own = byShard(shards, attempts, ({ bot }) => partitionOf(bot));
      const refused: RefusedAttempt[] = [];
      const left = new Set<number>();
      let cause: unknown;
      await Promise.all(
        [...bots].map(async ([shard, counted]) => {
          try {
            const found = await appendAttempts(shard.db, own.get(shard) ?? [], new Map(counted));
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
    async list(bot, filter, before, limit) {
      const since = filter.ofOwner ? await loadOwnedSince(db, bot) : null;
      return loadAttempts(shardOf(bot), bot, filter, before, limit, since);
    },
    counts: (bot) => loadCounts(shardOf(bot), bot),
  };
}

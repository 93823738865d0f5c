/**
 * Stores and loads webhook delivery attempts, which owners can see. Attempts are only for diagnosis, so deliveries
 * never wait for their storage.
 */

import { loadOwnedSince } from '../../postgres/bots/bots.js';
import { byShard } from '../../postgres/shards.js';
import * as rows from '../../postgres/webhooks/attempts.js';
import { noteFailing, noteFailingRoutes, type RouteNames } from '../../postgres/webhooks/failing.js';
import type { StoreContext } from '../core/context.js';
import { botOf, slotOf } from '../core/queue_ids.js';
import { type Route, readRecord, routeAt } from '../core/route_record.js';
import type { Webhooks } from './webhooks.js';

export type { AttemptCounts, OutcomeRow, RefusedAttempt } from '../../postgres/webhooks/attempts.js';

/** A delivery attempt that is to be stored. `bot` is the id of a queue. */
export type NewAttempt = Omit<rows.NewAttempt, 'slot'>;

export interface AttemptRow extends Omit<rows.AttemptRow, 'slot'> {
  /** The name of the route. Undefined if the attempt belongs to the webhook itself, or if the route was deleted. */
  readonly route: string | undefined;
}

/** Reports that `append` did not store the attempts of `bots`. All other attempts were stored. */
export class PartlyAppended extends Error {
  readonly bots: ReadonlySet<number>;
  readonly refused: readonly rows.RefusedAttempt[];

  constructor(bots: ReadonlySet<number>, refused: readonly rows.RefusedAttempt[], options: ErrorOptions) {
    super('a shard did not store attempts', options);
    this.bots = bots;
    this.refused = refused;
  }
}

/** Adds up, for each bot, the counts of all its queues. */
function ofBots(counts: ReadonlyArray<readonly [queue: number, counts: rows.AttemptCounts]>) {
  const sums = new Map<number, rows.AttemptCounts>();
  for (const [queue, own] of counts) {
    const { delivered, failed, dead, unkept } = sums.get(botOf(queue)) ?? noCounts;
    sums.set(botOf(queue), {
      delivered: delivered + own.delivered,
      failed: failed + own.failed,
      dead: dead + own.dead,
      unkept: unkept + own.unkept,
    });
  }
  return sums;
}

const noCounts: rows.AttemptCounts = { delivered: 0, failed: 0, dead: 0, unkept: 0 };

const routeOf = (queue: number) => ({ bot: botOf(queue), slot: slotOf(queue) });

const rowOf = ({ bot: queue, ...attempt }: NewAttempt): rows.NewAttempt => ({
  ...attempt,
  ...routeOf(queue),
});

const withRoute = ({ slot, ...row }: rows.AttemptRow, routes: readonly Route[]): AttemptRow => ({
  ...row,
  route: routeAt(routes, slot, row.at * 1_000)?.name,
});

/**
 * Returns undefined if the routes cannot be decrypted. An error here would also prevent the attempts of other bots from
 * being stored.
 */
const routeNames =
  (secrets: StoreContext['secrets']): RouteNames =>
  (bot, box, slot) => {
    if (box === null) return undefined;
    try {
      const { routes } = readRecord(secrets.open(box, `webhook:${bot}:routes`));
      return routes.find((route) => route.slot === slot)?.name;
    } catch {
      return undefined;
    }
  };

export type Attempts = ReturnType<typeof createAttempts>;

export function createAttempts(
  { db, shards, keys, secrets }: StoreContext,
  webhooks: Pick<Webhooks, 'routes'>,
) {
  const partitionOf = (queue: number) => keys.partitions.of(botOf(queue));
  const shardOf = (bot: number) => shards.at(partitionOf(bot));

  /** Records which webhooks and routes fail, and notifies their owners. In `failed`, `bot` is the id of a queue. */
  async function noteOutcomes(delivered: readonly number[], failed: ReturnType<typeof rows.failuresOf>) {
    const isOwn = (queue: number) => slotOf(queue) === 0;
    await noteFailing(
      db,
      delivered.filter(isOwn),
      failed.filter(({ bot }) => isOwn(bot)),
    );
    await noteFailingRoutes(
      db,
      delivered.filter((queue) => !isOwn(queue)).map(routeOf),
      failed.filter(({ bot }) => !isOwn(bot)).map(({ bot, error }) => ({ ...routeOf(bot), error })),
      routeNames(secrets),
    );
  }

  return {
    /**
     * Stores attempts. A route's attempts are stored under the bot, with the slot of the route. Returns the attempts
     * that Postgres refuses because of their data. Refused attempts are counted but not stored. Throws PartlyAppended
     * if only some shards failed. After any other error, nothing was stored.
     */
    async append(attempts: readonly NewAttempt[], counts: ReadonlyMap<number, rows.AttemptCounts>) {
      await noteOutcomes(
        [...counts].flatMap(([queue, { delivered }]) => (delivered > 0 ? [queue] : [])),
        rows.failuresOf(attempts, counts),
      );
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
              (own.get(shard) ?? []).map(rowOf),
              ofBots(counted),
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
    /** Returns the attempts with ids below `before`, newest first, at most `limit`. */
    async list(
      bot: number,
      filter: rows.AttemptFilter,
      before: number,
      limit: number,
    ): Promise<readonly AttemptRow[]> {
      const since = filter.ofOwner ? await loadOwnedSince(db, bot) : null;
      const [routes, found] = await Promise.all([
        webhooks.routes(bot),
        rows.loadAttempts(shardOf(bot), bot, filter, before, limit, since),
      ]);
      return found.map((row) => withRoute(row, routes));
    },
    /** Returns the outcomes of the last hour for each queue, the most frequent outcomes first. */
    outcomes: (bot: number) => rows.loadOutcomes(shardOf(bot), bot),
    counts: (bot: number) => rows.loadCounts(shardOf(bot), bot),
  };
}

/** Logs and counts restarts, replacements and failovers of Redis, and the changes that may be lost. */

import type { Identity } from '../journal/identity.js';
import type { RaisedPartition } from '../journal/recovery.js';
import type { Logger } from '../obs/log.js';
import { type Figure, figuresOf } from '../obs/metrics.js';
import type { Pauses } from '../redis/pauses.js';
import { systemTime } from '../time.js';

export interface Histories {
  raised(raised: RaisedPartition): void;
  readonly stats: { readonly raised: number; readonly proven: number };
}

/**
 * How long to collect reports of a Redis failover before they are logged, in ms. All partitions report a failover
 * within milliseconds, so one log line covers them.
 */
const gatherMs = 500;

const perhaps =
  'Redis was restarted, replaced or moved. Ids of messages, posts and updates skip 10,000, so that none is used twice. After a clean shutdown with an intact append-only file nothing is lost; otherwise changes that Redis acknowledged but did not keep are lost';
const certain =
  'Redis lost acknowledged changes. Changes already in Postgres are read from there; later changes are lost. No id is used twice';

export function reportHistories(log: Pick<Logger, 'warn'>, time = systemTime): Histories {
  const stats = { raised: 0, proven: 0 };
  let waiting: RaisedPartition[] = [];

  function tell(): void {
    const proven = waiting.filter((each) => each.proven).length;
    log.warn({ partitions: waiting.length, lost_for_certain: proven }, proven > 0 ? certain : perhaps);
    waiting = [];
  }

  return {
    stats,
    raised(raised) {
      stats.raised++;
      if (raised.proven) stats.proven++;
      if (waiting.push(raised) === 1) time.after(gatherMs, tell).unref();
    },
  };
}

export const redisFigures = (
  histories: Histories,
  pauses: Pauses,
  identity: Pick<Identity, 'refusal' | 'held'>,
): Figure[] =>
  figuresOf(
    {
      petrel_redis_refused:
        '1 while this process refuses its Redis, because it does not belong to its Postgres.',
      petrel_outgoing_held: '1 during a drill: nothing is sent to webhooks and browsers.',
      petrel_redis_histories_raised_total:
        'Partitions found on a different Redis run: after a restart, a failover or a slot migration.',
      petrel_redis_histories_lost_total:
        'Partitions found on a different Redis run that had certainly lost changes.',
      petrel_redis_moving_refused_total: 'Calls refused because their slot was migrating.',
      petrel_redis_moving_longest_ms:
        'Longest time that calls on one partition were refused because its slot was migrating.',
    },
    () => ({
      petrel_redis_refused: Number(identity.refusal() !== null),
      petrel_outgoing_held: Number(identity.held()),
      petrel_redis_histories_raised_total: histories.stats.raised,
      petrel_redis_histories_lost_total: histories.stats.proven,
      petrel_redis_moving_refused_total: pauses.stats.refused,
      petrel_redis_moving_longest_ms: pauses.stats.longest_ms,
    }),
  );

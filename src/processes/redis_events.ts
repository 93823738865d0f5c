/** Tells whoever runs it that Redis goes on under another history, and what that may have cost. */
import type { Identity } from '../journal/identity.js';
import type { RaisedPartition } from '../journal/recovery.js';
import type { Logger } from '../obs/log.js';
import { counter, type Figure, gauge } from '../obs/metrics.js';
import type { Pauses } from '../redis/pauses.js';

export interface Histories {
  raised(raised: RaisedPartition): void;
  readonly stats: { readonly raised: number; readonly proven: number };
}

/** Partitions of one failover meet it within milliseconds of each other: they are told in one line. */
const gatherMs = 500;

const perhaps =
  'Redis was restarted, replaced or moved: ids of messages, posts and updates skip 10,000, so that none comes twice. After an orderly stop with an intact append-only file that gap is all it costs; otherwise what Redis acknowledged and did not keep is lost';
const certain =
  'Redis lost changes that it had acknowledged: those that Postgres has are read back from there, later ones are lost; no id comes twice';

export function tellHistories(log: Pick<Logger, 'warn'>): Histories {
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
      if (waiting.push(raised) === 1) setTimeout(tell, gatherMs).unref();
    },
  };
}

/** What metrics tell of both. */
export function redisFigures(
  histories: Histories,
  pauses: Pauses,
  identity: Pick<Identity, 'refusal' | 'held'>,
): Figure[] {
  return [
    gauge(
      'petrel_redis_refused',
      '1 while this process uses no Redis, since the one it reaches does not belong to its Postgres.',
      () => (identity.refusal() === null ? 0 : 1),
    ),
    gauge(
      'petrel_outgoing_held',
      '1 while nothing is sent to webhooks and browsers, since this is a drill.',
      () => (identity.held() ? 1 : 0),
    ),
    counter(
      'petrel_redis_histories_raised_total',
      'Partitions that this process found under another history of Redis: a restart, a failover, a moved slot.',
      () => histories.stats.raised,
    ),
    counter(
      'petrel_redis_histories_lost_total',
      'Of these, partitions of which Redis had lost changes for certain.',
      () => histories.stats.proven,
    ),
    counter(
      'petrel_redis_moving_refused_total',
      'Calls that were refused since their slot was being moved.',
      () => pauses.stats.refused,
    ),
    gauge(
      'petrel_redis_moving_longest_ms',
      'Longest time for which calls on a partition were refused since its slot was being moved.',
      () => pauses.stats.longest_ms,
    ),
  ];
}

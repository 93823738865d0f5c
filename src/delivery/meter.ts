/**
 * Measures deliveries in one process: counts by outcome, response times of receivers, and the age of updates at
 * delivery.
 */
import { Distribution, Distributions } from '../obs/distribution.js';
import type { Figure } from '../obs/metrics.js';
import type { DeadReason, Delivery } from '../store/webhooks/deliveries.js';
import { systemTime } from '../time.js';
import type { AttemptFacts } from './context.js';
import { isDelivered, type Outcome } from './outcome.js';

export interface DeliveryMeter {
  note(delivery: Delivery, outcome: Outcome | null, dead: DeadReason | null, attempt: AttemptFacts): void;
  readonly figures: readonly Figure[];
  totals(): DeliveryFigures;
}

export interface DeliveryFigures {
  readonly outcomes: Readonly<Record<string, number>>;
  readonly dead: Readonly<Record<string, number>>;
  readonly retries: number;
  readonly times: number[];
  readonly ages: number[];
}

/**
 * Returns the label of an outcome: `delivered`, the class of a failed status (`5xx`), or the fault. Labels come from a
 * fixed set.
 */
function nameOf(outcome: Outcome): string {
  if (outcome.kind === 'failed') return outcome.reason;
  const { status } = outcome;
  return isDelivered(outcome) ? 'delivered' : `${Math.min(9, Math.floor(status / 100))}xx`;
}

export function createDeliveryMeter(time = systemTime): DeliveryMeter {
  const outcomes = new Map<string, number>();
  const latency = new Distributions();
  const age = new Distribution();
  const dead = new Map<string, number>();
  let retries = 0;
  const add = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  const rowsOf = (counts: ReadonlyMap<string, number>) =>
    [...counts].map(([name, n]) => [[name], n] as const);
  // Starts every counter at 0. If a counter appeared only with its first event, a rate over the counter would miss that
  // event.
  for (const reason of ['expired', 'too_large', 'queue_full'] satisfies DeadReason[]) dead.set(reason, 0);
  outcomes.set('delivered', 0);
  return {
    note({ made }, outcome, reason, { tries }) {
      if (reason !== null) add(dead, reason);
      if (outcome === null) return;
      const name = nameOf(outcome);
      add(outcomes, name);
      latency.of(name === 'delivered' ? 'delivered' : 'failed').observe(outcome.latencyMs);
      if (tries > 1) retries++;
      // The difference can be negative, because the creation time comes from Redis and the current time from this
      // process.
      if (name === 'delivered') age.observe(Math.max(0, time.now() - made));
    },
    totals: () => ({
      outcomes: Object.fromEntries(outcomes),
      dead: Object.fromEntries(dead),
      retries,
      times: [...latency.of('delivered').counts],
      ages: [...age.counts],
    }),
    figures: [
      {
        name: 'petrel_deliveries_total',
        help: 'Delivery attempts by outcome: `delivered`, the class of a failed status, or why there was no answer.',
        kind: 'counter',
        labels: ['outcome'],
        read: () => rowsOf(outcomes),
      },
      {
        name: 'petrel_delivery_seconds',
        help: 'Time until receivers answered or the attempt failed.',
        kind: 'histogram',
        labels: ['result'],
        *read() {
          for (const [result, times] of latency.byName) yield [[result], times];
        },
      },
      {
        name: 'petrel_update_age_seconds',
        help: 'Age of updates when their receiver accepted them, retries included.',
        kind: 'histogram',
        read: () => [[[], age]],
      },
      {
        name: 'petrel_delivery_retries_total',
        help: 'Attempts after the first one of an update.',
        kind: 'counter',
        read: () => retries,
      },
      {
        name: 'petrel_dead_letters_total',
        help: 'Updates that this process gave up, by reason.',
        kind: 'counter',
        labels: ['reason'],
        read: () => rowsOf(dead),
      },
    ],
  };
}

/** Deliveries of one process by how they ended, how long receivers took, and how old updates were when they were taken. */
import { nowMs } from '../clock.js';
import { Distribution, Distributions } from '../obs/distribution.js';
import type { Figure } from '../obs/metrics.js';
import type { DeadReason, Delivery } from '../store/webhooks/deliveries.js';
import type { AttemptFacts } from './context.js';
import { isDelivered, type Outcome } from './outcome.js';

export interface DeliveryMeter {
  /** One of `DrainContext.onOutcome`. */
  note(delivery: Delivery, outcome: Outcome | null, dead: DeadReason | null, attempt: AttemptFacts): void;
  readonly figures: readonly Figure[];
  told(): DeliveryFigures;
}

/** What became of deliveries since the start. */
export interface DeliveryFigures {
  readonly outcomes: Readonly<Record<string, number>>;
  readonly dead: Readonly<Record<string, number>>;
  readonly retries: number;
  /** Until a receiver took an update, by bucket of `durationBounds`. */
  readonly times: number[];
  /** From an update being made to its being taken, likewise. */
  readonly ages: number[];
}

/** `delivered`, the class of a status that is no success (`5xx`), or why there was no answer: a bounded set. */
function nameOf(outcome: Outcome): string {
  if (outcome.kind === 'failed') return outcome.reason;
  const { status } = outcome;
  return isDelivered(outcome) ? 'delivered' : `${Math.min(9, Math.floor(status / 100))}xx`;
}

export function createDeliveryMeter(): DeliveryMeter {
  const outcomes = new Map<string, number>();
  const latency = new Distributions();
  const age = new Distribution();
  const dead = new Map<string, number>();
  let retries = 0;
  const add = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  const rowsOf = (counts: ReadonlyMap<string, number>) =>
    [...counts].map(([name, n]) => [[name], n] as const);
  // A counter that appears with its first event hides that event from a rate.
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
      // Made by the clock of Redis: as exact as the clocks agree.
      if (name === 'delivered') age.observe(Math.max(0, nowMs() - made));
    },
    told: () => ({
      outcomes: Object.fromEntries(outcomes),
      dead: Object.fromEntries(dead),
      retries,
      times: [...latency.of('delivered').counts],
      ages: [...age.counts],
    }),
    figures: [
      {
        name: 'petrel_deliveries_total',
        help: 'Attempts to deliver by outcome: `delivered`, the class of another status, or why there was no answer.',
        kind: 'counter',
        labels: ['outcome'],
        read: () => rowsOf(outcomes),
      },
      {
        name: 'petrel_delivery_seconds',
        help: 'Time that receivers took to answer, or until they were given up.',
        kind: 'histogram',
        labels: ['result'],
        *read() {
          for (const [result, times] of latency.byName) yield [[result], times];
        },
      },
      {
        name: 'petrel_update_age_seconds',
        help: 'Time from an update being made to its being taken by a receiver, retries included.',
        kind: 'histogram',
        read: () => [[[], age]],
      },
      {
        name: 'petrel_delivery_retries_total',
        help: 'Attempts that were not the first of their update.',
        kind: 'counter',
        read: () => retries,
      },
      {
        name: 'petrel_dead_letters_total',
        help: 'Updates that were given up by this process, by reason.',
        kind: 'counter',
        labels: ['reason'],
        read: () => rowsOf(dead),
      },
    ],
  };
}

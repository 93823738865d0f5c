/**
 * Reads figures of up to a week from the installation's Prometheus (setting PROMETHEUS_URL). The queries are fixed: a
 * caller only chooses one of the ranges.
 */
import { z } from 'zod';
import { durationBounds } from '../obs/distribution.js';
import { kindOf } from '../obs/requests.js';
import { readBounded } from '../rules/bounded_body.js';
import type { Time } from '../time.js';
import type { History, HistoryRange } from '../wire/admin_results.js';
import { pointOf } from './history.js';
import { processLimits as limits } from './limits.js';

type LongRange = Exclude<HistoryRange, '1h'>;
const spans: Readonly<Record<LongRange, number>> = { '6h': 6, '24h': 24, '7d': 7 * 24 };
export const longRanges = Object.keys(spans) as LongRange[];
const hour_ms = 3_600_000;

const matrix = z.object({
  status: z.literal('success'),
  data: z.object({
    resultType: z.literal('matrix'),
    result: z.array(
      z.object({
        metric: z.record(z.string(), z.string()),
        values: z.array(z.tuple([z.number(), z.string()])).max(limits.history_points_max),
      }),
    ),
  }),
});

type Add = (name: string, value: number) => void;

interface Query {
  /**
   * Returns the query for the figures of each step. Rates are averages over the window. `window` and `step` are in
   * seconds.
   */
  readonly text: (window: number, step: number) => string;
  readonly read: (labels: Readonly<Record<string, string>>, value: number, add: Add) => void;
}

const polls = '(getUpdates|streamUpdates|/api/stream).*';

const queries: readonly Query[] = [
  {
    text: (window, step) => `sum by (status) (rate(petrel_requests_total[${window}s])) * ${step}`,
    read({ status }, value, add) {
      add('+calls', value);
      add(`+${kindOf(Number(status))}`, value);
    },
  },
  {
    text: (window, step) =>
      `sum by (le) (rate(petrel_request_seconds_bucket{call!~"${polls}"}[${window}s])) * ${step}`,
    read({ le }, value, add) {
      const i = [...durationBounds, Number.POSITIVE_INFINITY].indexOf(
        Number(le?.replace('+Inf', 'Infinity')),
      );
      if (i < 0) return;
      // In Prometheus, the count of a bucket includes all lower buckets. Subtracting each count from the next higher
      // bucket leaves that bucket's own count.
      add(`+t${i}`, value);
      add(`+t${i + 1}`, -value);
    },
  },
  {
    text: (window, step) => `sum by (outcome) (rate(petrel_deliveries_total[${window}s])) * ${step}`,
    read: ({ outcome }, value, add) => add(`+d:${outcome}`, value),
  },
  {
    text: (window) => `max(max_over_time(petrel_flush_lag_seconds[${window}s])) * 1000`,
    read: (_, value, add) => add('lag_ms', value),
  },
  {
    text: () => 'sum(max by (server) (petrel_redis_memory_bytes))',
    read: (_, value, add) => add('redis_bytes', value),
  },
];

/**
 * Loads the points of a range, at most `limits.history_points_max`. Throws unless Prometheus gives a valid answer to
 * every query within `limits.prometheus_wait_ms_max`.
 */
export async function readPrometheus({
  url,
  range,
  time,
}: {
  readonly url: string;
  readonly range: LongRange;
  readonly time: Time;
}): Promise<Omit<History, 'ranges'>> {
  const span_ms = spans[range] * hour_ms;
  const step_ms = span_ms / limits.history_points_max;
  const window = Math.max(step_ms, limits.prometheus_window_ms_min) / 1_000;
  const step = step_ms / 1_000;
  const at_ms = time.now();
  // Prometheus labels a rate with the end of its window, but the history labels a point with its start.
  const end = Math.floor(at_ms / step_ms) * step;
  const begin = end - span_ms / 1_000 + step;
  const signal = time.deadline(limits.prometheus_wait_ms_max);
  const points = new Map<number, Map<string, number>>();
  await Promise.all(
    queries.map(async ({ text, read }) => {
      const target = new URL('api/v1/query_range', url.endsWith('/') ? url : `${url}/`);
      const asked = { query: text(window, step), start: begin, end, step };
      for (const [name, value] of Object.entries(asked)) target.searchParams.set(name, String(value));
      const response = await fetch(target, { redirect: 'error', signal });
      const answer = await readBounded(
        response.body,
        limits.prometheus_answer_bytes_max,
        'answer of Prometheus',
      );
      if (response.status !== 200) throw new Error(`Prometheus answered with ${response.status}`);
      for (const { metric, values } of matrix.parse(JSON.parse(answer)).data.result)
        for (const [seconds, value] of values) {
          const at = seconds * 1_000 - step_ms;
          const figures = points.get(at) ?? new Map<string, number>();
          points.set(at, figures);
          const figure = Number(value);
          // Prometheus returns NaN as the rate of a counter that it has read only once.
          if (Number.isFinite(figure))
            read(metric, figure, (name, more) => figures.set(name, (figures.get(name) ?? 0) + more));
        }
    }),
  );
  const found = [...points].sort(([a], [b]) => a - b);
  return {
    ...{ at_ms, step_ms, span_ms, bounds_seconds: [...durationBounds] },
    points: found.map(([at, figures]) =>
      pointOf(at, new Map([...figures].map(([name, value]) => [name, Math.max(0, Math.round(value))]))),
    ),
  };
}

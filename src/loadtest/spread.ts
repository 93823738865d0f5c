/** Latency distributions: an HDR histogram in microseconds, and its percentiles. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

/** Latency percentiles in milliseconds; `max` is the slowest. */
export interface Spread {
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export const percentiles: ReadonlyArray<readonly [keyof Spread, number]> = [
  ['p50', 50],
  ['p75', 75],
  ['p90', 90],
  ['p95', 95],
  ['p99', 99],
  ['p999', 99.9],
  ['max', 100],
];

/** Longer times count as ten minutes. */
const us_max = 600_000_000;

export const makeHistogram = (): RecordableHistogram =>
  createHistogram({ lowest: 1, highest: us_max, figures: 3 });

/** Records a time in milliseconds. */
export function note(histogram: RecordableHistogram, ms: number): void {
  histogram.record(Math.max(1, Math.min(us_max, Math.round(ms * 1_000))));
}

export function spreadOf(histogram: RecordableHistogram): Spread {
  const ms = (share: number) => (histogram.count === 0 ? 0 : histogram.percentile(share) / 1_000);
  return Object.fromEntries(percentiles.map(([name, share]) => [name, ms(share)])) as unknown as Spread;
}

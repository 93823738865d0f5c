/** Records latencies in HDR histograms in µs, and computes their percentiles. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { LatencyPercentiles } from './results.js';

export const percentiles: ReadonlyArray<readonly [keyof LatencyPercentiles, number]> = [
  ['p50', 50],
  ['p75', 75],
  ['p90', 90],
  ['p95', 95],
  ['p99', 99],
  ['p999', 99.9],
  ['max', 100],
];

/** The longest latency that can be recorded: ten minutes, in µs. A longer latency is recorded as ten minutes. */
const us_max = 600_000_000;

export const makeHistogram = (): RecordableHistogram =>
  createHistogram({ lowest: 1, highest: us_max, figures: 3 });

export function note(histogram: RecordableHistogram, ms: number): void {
  histogram.record(Math.max(1, Math.min(us_max, Math.round(ms * 1_000))));
}

export function percentilesOf(histogram: RecordableHistogram): LatencyPercentiles {
  const ms = (share: number) => (histogram.count === 0 ? 0 : histogram.percentile(share) / 1_000);
  return Object.fromEntries(percentiles.map(([name, share]) => [name, ms(share)])) as LatencyPercentiles;
}

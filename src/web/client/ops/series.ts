/** Turns the points of the history into the lines of charts and the rows of a table. */
import { quantile } from './rates.js';
import type { History } from './types.js';

export type HistoryPoint = History['points'][number];

/** Adds newer points to the history, and drops the points that are older than the range. */
export function joined(before: History | null, more: History): History {
  const points = [...(before?.points ?? []), ...more.points];
  return { ...more, points: points.filter(({ at_ms }) => at_ms >= more.at_ms - more.span_ms) };
}

export interface Line {
  name: string;
  /** The value at each point of the range. Null if no process reported at this point, or if the figure is unknown. */
  values: Array<number | null>;
}

/**
 * The points of a range in order, with null for missing points. `start` is the Unix time in ms of the first point.
 * `step` is the time between points in ms.
 */
export interface Past {
  start: number;
  step: number;
  bounds: readonly number[];
  points: Array<HistoryPoint | null>;
}

export function pastOf({ at_ms, step_ms: step, span_ms, bounds_seconds: bounds, points }: History): Past {
  const size = span_ms / step;
  const start = (Math.floor(at_ms / step) - size) * step;
  const found: Array<HistoryPoint | null> = new Array(size).fill(null);
  for (const point of points) {
    const i = Math.round((point.at_ms - start) / step);
    if (i >= 0 && i < size) found[i] = point;
  }
  return { start, step, bounds, points: found };
}

export const lineOf = (
  { points }: Past,
  name: string,
  of: (point: HistoryPoint) => number | null | undefined,
): Line => ({
  name,
  values: points.map((point) => (point && of(point)) ?? null),
});

export const perSecond = (past: Past, name: string, of: (point: HistoryPoint) => number): Line =>
  lineOf(past, name, (point) => (of(point) * 1_000) / past.step);

const outcomes_shown_max = 5;

/**
 * Returns one line for each of the most frequent outcomes, and one line for all other outcomes together. Delivered
 * updates come first.
 */
export function deliveryLines(past: Past): Line[] {
  const totals = new Map<string, number>([['delivered', 0]]);
  for (const point of past.points)
    for (const [name, count] of Object.entries(point?.deliveries ?? {}))
      totals.set(name, (totals.get(name) ?? 0) + count);
  const rank = (name: string) => (name === 'delivered' ? Number.POSITIVE_INFINITY : (totals.get(name) ?? 0));
  const names = [...totals.keys()].sort((a, b) => rank(b) - rank(a) || a.localeCompare(b));
  const shown = names.slice(0, outcomes_shown_max);
  const rest = names.slice(outcomes_shown_max);
  const lines = shown.map((name) => perSecond(past, name, ({ deliveries }) => deliveries[name] ?? 0));
  const others = ({ deliveries }: HistoryPoint) =>
    rest.reduce((sum, name) => sum + (deliveries[name] ?? 0), 0);
  return rest.length === 0 ? lines : [...lines, perSecond(past, 'other', others)];
}

/**
 * Returns the smallest number that is at least `max` and has the form 1, 2 or 5 times a power of ten. Returns 1 for 0.
 */
export function topOf(max: number): number {
  if (max <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(max));
  return power * ([1, 2, 5].find((n) => n * power >= max) ?? 10);
}

/**
 * Returns the upper end of an axis for values in bytes. It is 1, 2 or 5 times a power of ten, in bytes, KiB, MiB or
 * GiB.
 */
export function byteTopOf(max: number): number {
  const unit = 1_024 ** Math.max(0, Math.floor(Math.log(Math.max(max, 1)) / Math.log(1_024)));
  return unit * topOf(max / unit);
}

export interface Row {
  at_ms: number;
  /** Rates per second. */
  calls: number;
  failed: number;
  delivered: number;
  undelivered: number;
  p99: number | null;
  lag_ms: number | undefined;
  redis_bytes: number | undefined;
}

function rowOf(at_ms: number, points: readonly HistoryPoint[], { step, bounds }: Past): Row {
  const rateOf = (of: (point: HistoryPoint) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / ((points.length * step) / 1_000);
  const largest = (of: (point: HistoryPoint) => number | undefined) => {
    const known = points.flatMap((point) => of(point) ?? []);
    return known.length === 0 ? undefined : Math.max(...known);
  };
  const times = bounds.map((_, i) => points.reduce((sum, point) => sum + (point.times[i] ?? 0), 0));
  const longer = points.reduce((sum, point) => sum + (point.times[bounds.length] ?? 0), 0);
  const attempts = ({ deliveries }: HistoryPoint) => Object.values(deliveries).reduce((a, b) => a + b, 0);
  const delivered = rateOf(({ deliveries }) => deliveries.delivered ?? 0);
  return {
    at_ms,
    calls: rateOf(({ calls }) => calls),
    failed: rateOf(({ failed }) => failed),
    delivered,
    undelivered: rateOf(attempts) - delivered,
    p99: quantile(bounds, [...times, longer], 0.99),
    lag_ms: largest((point) => point.lag_ms),
    redis_bytes: largest((point) => point.redis_bytes),
  };
}

const rows_max = 60;

/** Combines successive points into at most 61 rows. Each row covers a sixtieth of the range. */
export function rowsOf(past: Past): Row[] {
  const width = (past.points.length * past.step) / rows_max;
  const found = new Map<number, HistoryPoint[]>();
  for (const point of past.points) {
    if (point === null) continue;
    const at = Math.floor(point.at_ms / width) * width;
    found.set(at, [...(found.get(at) ?? []), point]);
  }
  return [...found].map(([at, points]) => rowOf(at, points, past));
}

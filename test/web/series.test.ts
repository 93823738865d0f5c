import { expect, test } from 'vitest';
import {
  byteTopOf,
  deliveryLines,
  joined,
  pastOf,
  perSecond,
  rowsOf,
  topOf,
} from '../../src/web/client/ops/series.js';
import type { History } from '../../src/web/client/ops/types.js';

const step = 5_000;
const begin = 1_800_000_000_000;
type Point = History['points'][number];

const point = (at_ms: number, more: Partial<Point> = {}): Point => ({
  ...{ at_ms, calls: 0, refused: 0, slowed: 0, failed: 0, times: [0, 0], deliveries: {} },
  ...more,
});
const history = (at_ms: number, points: Point[]): History => ({
  ...{ at_ms, step_ms: step, span_ms: 3_600_000, ranges: ['1h'], bounds_seconds: [0.01] },
  points,
});

test('new points join the history, and points older than the range of the history are removed', () => {
  const first = history(begin, [point(begin - 3_600_000), point(begin - 2 * step)]);
  const both = joined(first, history(begin + step, [point(begin - step)]));
  expect(both.at_ms).toBe(begin + step);
  expect(both.points.map(({ at_ms }) => at_ms - begin)).toEqual([-2 * step, -step]);
  expect(joined(null, first)).toEqual(first);
});

test('a line has a value for each point of the range, and null for points without a report', () => {
  const past = pastOf(history(begin + 1_234, [point(begin - 3 * step, { calls: 10 }), point(begin - step)]));
  expect(past.points).toHaveLength(720);
  expect(past.start).toBe(begin - 3_600_000);
  expect(perSecond(past, 'calls', ({ calls }) => calls).values.slice(-4)).toEqual([null, 2, null, 0]);
});

test('the chart of deliveries has a line for each frequent outcome and one line for all other outcomes, with "delivered" first', () => {
  const deliveries = { delivered: 1, a: 50, b: 40, c: 30, d: 20, e: 10, f: 5 };
  const lines = deliveryLines(pastOf(history(begin, [point(begin - step, { deliveries })])));
  expect(lines.map(({ name, values }) => [name, values.at(-1)])).toEqual([
    ['delivered', 0.2],
    ['a', 10],
    ['b', 8],
    ['c', 6],
    ['d', 4],
    ['other', 3],
  ]);
  const none = deliveryLines(pastOf(history(begin, [point(begin - step)])));
  expect(none.map(({ name, values }) => [name, values.at(-1)])).toEqual([['delivered', 0]]);
});

test('each row of the table combines the points of one sixtieth of the range', () => {
  const minute = Math.floor(begin / 60_000) * 60_000;
  const points = [
    point(minute - step, { calls: 1 }),
    point(minute, { calls: 10, failed: 5, times: [9, 0], lag_ms: 3, deliveries: { delivered: 5 } }),
    point(minute + step, {
      calls: 30,
      times: [0, 1],
      deliveries: { delivered: 5, '5xx': 10 },
      redis_bytes: 7,
    }),
  ];
  const rows = rowsOf(pastOf(history(minute + 30_000, points)));
  expect(rows.map(({ at_ms }) => at_ms - minute)).toEqual([-60_000, 0]);
  expect(rows[1]).toEqual({
    ...{ at_ms: minute, calls: 4, failed: 0.5, delivered: 1, undelivered: 1 },
    ...{ p99: 10, lag_ms: 3, redis_bytes: 7 },
  });
  expect(rows[0]).toMatchObject({ p99: null, lag_ms: undefined });
});

test('an axis ends at a round number that is not less than the largest value', () => {
  expect([0, 0.03, 1, 1.1, 4, 5.1, 130].map(topOf)).toEqual([1, 0.05, 1, 2, 5, 10, 200]);
  expect([0, 700, 3 * 1_024, 300 * 1_024 ** 2].map(byteTopOf)).toEqual([
    1,
    1_000,
    5 * 1_024,
    500 * 1_024 ** 2,
  ]);
});

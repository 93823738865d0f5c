import { expect, test } from 'vitest';
import { quantile, Rating } from '../../src/web/client/ops/rates.js';
import type { Call, Node, Overview } from '../../src/web/client/ops/types.js';

const bounds = [0.001, 0.01, 0.1];
const call = (name: string, ok: number, times: number[], failed = 0): Call => ({
  ...{ call: name, ok, refused: 0, slowed: 0, failed, gone: 0, times },
});
const front = (id: string, reported_ms: number, calls: Call[]): Node => ({
  ...{
    id,
    role: 'front',
    host: 'h',
    pid: 1,
    version: '1',
    since_ms: 0,
    state: 'serving',
    silent_ms: 0,
    reported_ms,
  },
  front: { open: 0, polls: 0, streams: 0, calls },
});
const seen = (...nodes: Node[]) => ({ nodes, bounds_seconds: bounds }) as unknown as Overview;

test('a computed quantile is within the bounds of its bucket', () => {
  expect(quantile(bounds, [0, 0, 0, 0], 0.5)).toBeNull();
  expect(quantile(bounds, [100, 0, 0, 0], 0.5)).toBeCloseTo(0.5);
  expect(quantile(bounds, [50, 0, 50, 0], 0.99)).toBeCloseTo(98.2);
  expect(quantile(bounds, [0, 0, 0, 7], 0.5)).toBe(100);
});

test('a rate is the sum over all processes, even if some processes started or ended meanwhile', () => {
  const rating = new Rating();
  expect(rating.add(seen(front('a', 1_000, [call('getMe', 100, [100, 0, 0, 0])])))).toBeNull();
  // The same report arrives a second time, so no time has passed between the two reports.
  expect(rating.add(seen(front('a', 1_000, [call('getMe', 100, [100, 0, 0, 0])])))).toBeNull();
  const a = front('a', 3_000, [call('getMe', 120, [110, 10, 0, 0], 4), call('getUpdates', 2, [0, 0, 0, 2])]);
  const first = rating.add(seen(a, front('b', 3_000, [call('getMe', 9_000, [9_000, 0, 0, 0])])));
  expect(first).toMatchObject({ requests: 13, failed: 2 });
  expect(first?.calls.find((one) => one.call === 'getMe')).toMatchObject({ all: 12, ok: 10, total: 124 });
  // Long polls wait on purpose and are not part of the latency.
  expect(first?.p99).toBeLessThan(10);
  const b = front('b', 5_000, [call('getMe', 9_030, [9_030, 0, 0, 0])]);
  const second = rating.add(seen(b));
  expect(second).toMatchObject({ requests: 15, failed: 0 });
  expect([...(second?.byNode.keys() ?? [])]).toEqual(['b']);
});

test('the mean latency excludes calls that were made before the measured period', () => {
  const rating = new Rating();
  let last = null;
  for (let s = 0; s <= 40; s += 2)
    last = rating.add(seen(front('a', s * 1_000, [call('getMe', s < 20 ? 1_000 * s : 20_000, [])])));
  expect(last?.requests).toBe(0);
  const more = [call('getMe', 20_000, []), call('sendMessage', 5_000, [])];
  const rates = rating.add(seen(front('a', 42_000, more)));
  expect(rates?.requests).toBe(0);
  expect(rates?.calls).toContainEqual(expect.objectContaining({ call: 'sendMessage', all: 0, total: 5_000 }));
});

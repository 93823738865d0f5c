import { expect, test } from 'vitest';
import { goalsOf } from '../../bench/goals.js';
import type { Results } from '../../src/loadtest/results.js';

const side = (role: 'base' | 'subject', rate: number, busy: number, redis: number) => ({
  ...{ role, label: role, rate, busy },
  cpu: { server: 10, redis },
});

const scenario = (ratio: number, cpu_ratio: number, redis: number) => ({
  ...{ name: 'sendMessage', title: 'sendMessage', proof: 'P2', ratio, cpu_ratio, ratios: [ratio] },
  goal: { share: 0.8, redis_us: 25 },
  sides: [side('base', 1_000, 1, 20), side('subject', 900, 0.5, redis)],
});

const latency = (role: 'base' | 'subject', p99: number, answered: number) => ({
  ...{ scenario: 'sendMessage', role, offered: 100, answered, rounds: 5, lag_s: 0.5 },
  ms: { p99 },
});

const goals = (scenarios: object[], latencies: object[]) =>
  goalsOf({ scenarios, latencies, findings: [] } as unknown as Results).map(({ proof, met, figure }) => ({
    row: [proof, met],
    figure,
  }));

test('the result of a scenario is the lower of two ratios: the ratio of rates and the ratio of CPU times', () => {
  expect(goals([scenario(0.9, 0.79, 25)], []).map(({ row }) => row)).toEqual([
    ['P2', false],
    ['P2', true],
  ]);
  const [share, redis] = goals([scenario(0.8, 0.85, 25.1)], []);
  expect(share?.row).toEqual(['P2', true]);
  expect(share?.figure).toMatch(/^0\.800 .*its core was only 50 % busy/);
  expect(redis?.row).toEqual(['P2', false]);
});

test('the p99 of the service is compared with the p99 of the minimal server, unless the minimal server missed the rate', () => {
  const p6 = (...latencies: object[]) => goals([], latencies).find(({ row }) => row[0] === 'P6')?.row[1];
  expect(p6(latency('base', 2, 100), latency('subject', 6, 100))).toBe(true);
  expect(p6(latency('base', 2, 100), latency('subject', 6.1, 100))).toBe(false);
  expect(p6(latency('base', 2, 90), latency('subject', 9, 90))).toBeNull();
  // A difference of less than 1 ms is ignored, because the clock has a precision of 1 ms.
  expect(p6(latency('base', 0.2, 100), latency('subject', 2.9, 100))).toBe(true);
  expect(goals([], [latency('subject', 1, 100)]).map(({ row }) => row)).toEqual([['P4', true]]);
});

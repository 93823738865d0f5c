/**
 * Tests the results page of the benchmark: the verdict, warnings, the spread between rounds, CPU shares, and the trend
 * over kept results.
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { goalsOf } from '../../bench/goals.js';
import { keepResults, kept_results_max, loadKept } from '../../bench/kept_results.js';
import { takenBetween } from '../../bench/measure.js';
import { pageOf } from '../../src/loadtest/page.js';
import { type Results, readResults, type ScenarioResult } from '../../src/loadtest/results.js';
import { trend_points_max, trendsOf } from '../../src/loadtest/trend.js';
import { verdictOf, warningsOf } from '../../src/loadtest/verdict.js';

const side = (role: 'base' | 'subject', rates: readonly number[], taken: readonly number[]) => ({
  ...{ label: role === 'base' ? 'floor' : 'Petrel', role, rate: rates[1] as number, rates: [...rates] },
  ...{ taken: [...taken], cpu: { server: 12.5, redis: 20, flush: 1, postgres: 2, load: 3 }, busy: 1 },
  ...{ scripts: 1, commands: 4, p50_ms: 1, p99_ms: 2, journal: 0 },
});

const scenario = (given: Partial<ScenarioResult> = {}, taken = [0.01, 0.02, 0.03]): ScenarioResult => ({
  ...{ name: 'sendMessage', title: 'sendMessage', proof: 'P2', goal: { share: 0.8 }, connections: 4 },
  sides: [side('base', [990, 1_000, 1_010], taken), side('subject', [890, 900, 910], taken)],
  ...{ ratio: 0.9, ratios: [0.88, 0.9, 0.92], cpu_ratio: 0.85, growth: null, drained_s: 0 },
  ...given,
});

function run(scenarios: readonly ScenarioResult[], day = 1, given: Partial<Results> = {}): Results {
  const found = { scenarios: [...scenarios], latencies: [], scaling: [], findings: [], soak: [] };
  return {
    ...{
      schema: 'petrel-bench',
      version: 1,
      made_at: `2030-01-${String(day).padStart(2, '0')}T10:00:00.000Z`,
    },
    ...{ petrel: '0.1.0', commit: `abcdef00${day}`, ended: '', seconds: 61, ...found },
    ...{ machine: { cpu: 'x', cores: 2, placement: 'p' }, settings: { load: 'fixed', connections: 4 } },
    goals: goalsOf(found),
    ...given,
  };
}

const textOf = (html: string) =>
  html
    .replace(/<style>.*<\/style>/s, '')
    .replace(/<[^>]*>/g, '\n')
    .replace(/\n+/g, '\n');

test('the page of the benchmark begins with the verdict', () => {
  const good = textOf(pageOf(run([scenario()])));
  expect(good).toMatch(/Petrel bench\nThe measured goal is met\.\nPetrel 0\.1\.0/);
  const missed = textOf(pageOf(run([scenario({ cpu_ratio: 0.7 })])));
  expect(missed).toMatch(
    /Petrel bench\n1 of 1 measured goals is not met\.\nP2, sendMessage: rate compared.*: 0\.70/,
  );
});

test.each([
  [[true, true], '', true, 'All 2 decided goals are met.'],
  [[true, null], '', true, 'The measured goal is met. 1 could not be decided.'],
  [[true, false, false], '', false, '2 of 3 measured goals are not met.'],
  [[], '', null, 'This run decides no goal.'],
  // A run that ended early has not measured all goals, so its verdict is neither good nor bad.
  [[true], 'interrupted', null, 'The measured goal is met.'],
])('goals with the results %j (ended: %j) give the verdict %j', (met, ended, good, words) => {
  const goals = met.map((each) => ({ proof: 'P1', what: 'a', figure: '1', goal: '1', met: each }));
  expect(verdictOf({ goals, ended })).toEqual({ good, words });
});

test('the page of the benchmark shows a warning above the verdict if other programs ran during the benchmark', () => {
  const html = textOf(pageOf(run([scenario({}, [0.02, 0.31, 0.02]), scenario({ name: 'getMe' })])));
  expect(html).toMatch(
    /Petrel bench\nWarning\.\n Other programs, .* took CPU time during rounds: up to 31 % of this machine in sendMessage\. Repeat.*\nAll 2/,
  );
  expect(warningsOf(run([scenario()]))).toEqual([]);
});

test('the page of the benchmark shows a warning about rounds that differ widely', () => {
  const ratios = [0.6, 0.9, 0.92];
  expect(warningsOf(run([scenario({ ratios })]))).toEqual([
    'The rounds differ widely: sendMessage had 0.60 to 0.92 of the floor.',
  ]);
});

test('results without the CPU time of other programs cause no warning about other programs', () => {
  const old = scenario();
  const sides = old.sides.map(({ taken: _, ...rest }) => rest);
  const results = readResults(JSON.stringify(run([{ ...old, sides }])));
  expect(warningsOf(results)).toEqual([]);
  expect(pageOf(results)).toContain('sendMessage');
});

test('the page of the benchmark shows one ratio to the minimal server for each scenario, and the spread of the rounds', () => {
  const html = textOf(pageOf(run([scenario()])));
  // The page has two ratios, by rate and by CPU time. Both the goal and the plot use the lower ratio. Only the goal
  // also lists the two ratios.
  expect(html).toContain('0.85 of floor, rates 0.88 to 0.92');
  expect(html).toContain('0.850 (0.900 by rate, 0.850 by CPU time');
  expect(html).not.toContain('0.90 of floor');
  expect(html).toContain('890 to 910');
});

test('the trend shows comparable runs, oldest first', () => {
  const disturbed = scenario({ cpu_ratio: 0.8 }, [0.5, 0.5, 0.5]);
  const kept = [
    run([scenario({ cpu_ratio: 0.82 })], 3),
    run([disturbed], 2),
    run([scenario()], 1, { machine: { cpu: 'other', cores: 2, placement: 'p' } }),
    run([scenario({ name: 'getMe' })], 4),
  ];
  const [trend, ...others] = trendsOf(run([scenario()], 5), kept);
  expect(others).toEqual([]);
  expect(trend?.points.map(({ label, share, disturbed: star }) => [label, share, star])).toEqual([
    ['01-02 abcdef0', 0.8, true],
    ['01-03 abcdef0', 0.82, false],
    ['01-05 abcdef0', 0.85, false],
  ]);
  const html = textOf(pageOf(run([scenario()], 5), kept));
  expect(html).toMatch(/Trend over commits[\s\S]*01-02 abcdef0 \*\n0\.80\n12\.5\n/);
  expect(pageOf(run([scenario()], 5))).not.toContain('Trend over commits');
});

test('a trend has a limited number of runs', () => {
  const kept = Array.from({ length: 27 }, (_, i) => run([scenario()], i + 1));
  const [trend] = trendsOf(run([scenario()], 28), kept);
  expect(trend?.points).toHaveLength(trend_points_max);
  expect(trend?.points.at(-1)?.label).toMatch(/^01-28/);
});

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'petrel-kept-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a folder of kept results keeps the newest results and leaves other files alone', () => {
  writeFileSync(join(folder, 'notes.txt'), 'mine');
  writeFileSync(join(folder, '20200101T000000Z-unreadable.json'), '{');
  const made_at = (n: number) => new Date(Date.UTC(2030, 0, 1, 0, 0, n)).toISOString();
  for (let n = 0; n < kept_results_max + 2; n++)
    keepResults(folder, run([scenario()], 1, { made_at: made_at(n), commit: 'abc1234567 with changes' }));
  const names = readdirSync(folder).sort();
  expect(names).toContain('notes.txt');
  expect(names.filter((name) => name.endsWith('.json'))).toHaveLength(kept_results_max);
  expect(names[0]).toBe('20300101T000002Z-abc1234567.json');
  const kept = loadKept(folder);
  expect(kept).toHaveLength(kept_results_max);
  expect(kept[0]?.made_at).toBe(made_at(kept_results_max + 1));
});

test('a folder of kept results is created, and unreadable results are skipped', () => {
  const fresh = join(folder, 'a', 'b');
  expect(loadKept(fresh)).toEqual([]);
  writeFileSync(join(fresh, '20200101T000000Z-abc.json'), '{');
  expect(loadKept(fresh)).toEqual([]);
});

test('CPU time counts as CPU time of other programs if no process of the run used it', () => {
  const reading = (at: number, machine: number, own: number) => ({
    ...{ at, machine, own, cpu: { server: own, flush: 0, postgres: 0, load: 0 } },
    redis: { cpuSeconds: 0, scripts: 0, commands: 0 },
  });
  // In 10 s, two cores worked for 16 s. The run used 6 s of this time.
  expect(takenBetween(reading(0, 100, 1), reading(10_000, 116, 4), 2)).toBeCloseTo(0.5);
  // The clocks of the system are not exact. Here, the run seems to have used more CPU time than all programs together.
  // The share of other programs must then be 0.
  expect(takenBetween(reading(0, 100, 1), reading(10_000, 105, 4), 2)).toBe(0);
  expect(takenBetween(reading(0, Number.NaN, 1), reading(1, Number.NaN, 4), 2)).toBeNaN();
});

/**
 * Tests that the benchmark runs from a bare build and compares both sides of a scenario. At the first wrong answer it
 * ends without leaving files. `bench.long.test.ts` tests its findings.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readResults } from '../../src/loadtest/results.js';
import { bench } from './run_bench.js';

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'petrel-bench-test-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('the benchmark compares the service with a minimal server', async () => {
  const file = join(dir, 'found.json');
  const only = ['--only', 'reactions', '--entities', '20', '--no-fixed', '--json', file];
  const ended = await bench(dir, 'short', ...only);
  expect(ended, ended.complaint).toMatchObject({ code: 0, left: [] });
  const { scenarios, goals, ended: why } = readResults(readFileSync(file, 'utf8'));
  expect(why).toBe('');
  expect(scenarios.map(({ name, sides }) => [name, sides.length])).toEqual([['reactions', 2]]);
  for (const side of scenarios[0]?.sides ?? []) {
    expect(side.rate).toBeGreaterThan(0);
    // Calls that arrive together share a script, and the flusher runs scripts too.
    expect(side.scripts).toBeGreaterThan(0);
    expect(side.scripts).toBeLessThan(3);
  }
  expect(goals.filter(({ proof }) => proof === 'P2')).toHaveLength(1);
  expect(ended.output).toContain('goal ≥ 0.80');
}, 300_000);

test('the benchmark ends when a call is refused', async () => {
  // With so few messages, one of them is edited twice within a second, which is refused.
  const few = ['--only', 'editMessageText', '--messages', '20', '--load', 'autocannon'];
  const ended = await bench(dir, 'refused', ...few);
  expect(ended).toMatchObject({ code: 1, left: [] });
  expect(ended.complaint).toMatch(/bench: \d+ of \d+ requests failed under load/);
}, 300_000);

/**
 * Tests the benchmark, started from the build. Each scenario compares the service with a minimal server. The report
 * contains round trips, memory, and goals at a fixed rate. The benchmark ends at the first wrong answer and leaves no
 * files.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readResults } from '../../src/loadtest/results.js';
import { memoryFolder } from '../support/servers.js';
import { bench } from './run_bench.js';

let dir: string;

beforeAll(() => {
  dir = memoryFolder();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('the benchmark reports goals, round trips and memory', async () => {
  const file = join(dir, 'found.json');
  const only = ['--only', 'trips,memory,reactions', '--entities', '200', '--json', file];
  const ended = await bench(dir, 'whole', ...only);
  expect(ended, ended.complaint).toMatchObject({ code: 0, left: [] });
  const { scenarios, findings, goals, ended: why } = readResults(readFileSync(file, 'utf8'));
  expect(why).toBe('');
  const rows = (proof: string) => findings.filter((finding) => finding.proof === proof);
  // On a busy machine, a front may look up a token again. This adds one command for 30 calls.
  expect(rows('P5').map(({ measured, goal }) => [Math.round(Number.parseFloat(measured)), goal])).toEqual(
    [0, 1, 1, 1, 1, 1, 2, 2, 2, 2].map((goal) => [goal, String(goal)]),
  );
  expect(rows('P7')).toHaveLength(4);
  expect(scenarios.map(({ name, sides }) => [name, sides.length])).toEqual([['reactions', 2]]);
  for (const side of scenarios[0]?.sides ?? []) {
    expect(side.rate).toBeGreaterThan(0);
    // The number of scripts per call is not exactly one: simultaneous calls share a script, and the flusher runs
    // scripts too.
    expect(side.scripts).toBeGreaterThan(0);
    expect(side.scripts).toBeLessThan(3);
  }
  expect(goals.filter(({ proof }) => ['P2', 'P6'].includes(proof))).toHaveLength(2);
  for (const text of ['goal ≥ 0.80', 'round trips of getMe', 'a hot message with'])
    expect(ended.output).toContain(text);
}, 300_000);

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
    // The number of scripts per call is not exactly one: simultaneous calls share a script, and the flusher runs
    // scripts too.
    expect(side.scripts).toBeGreaterThan(0);
    expect(side.scripts).toBeLessThan(3);
  }
  expect(goals.filter(({ proof }) => proof === 'P2')).toHaveLength(1);
  expect(ended.output).toContain('goal ≥ 0.80');
}, 300_000);

test('the benchmark ends when a call is refused', async () => {
  // With only 20 messages, the benchmark edits one message twice within a second. The service refuses the second edit.
  const few = ['--only', 'editMessageText', '--messages', '20', '--load', 'autocannon'];
  const ended = await bench(dir, 'refused', ...few);
  expect(ended).toMatchObject({ code: 1, left: [] });
  expect(ended.complaint).toMatch(/bench: \d+ of \d+ requests failed under load/);
}, 300_000);

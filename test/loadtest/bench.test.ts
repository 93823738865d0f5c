/**
 * Tests that the benchmark runs from a bare build and reports the expected findings. At the first wrong answer it
 * ends without leaving files.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, test } from 'vitest';
import { readResults } from '../../src/loadtest/results.js';

const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));
let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'petrel-bench-test-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly output: string;
  readonly complaint: string;
  /** The names of the files that the run left in its temporary folder. */
  readonly left: readonly string[];
}

function bench(name: string, ...args: readonly string[]): Promise<Ended> {
  const temporary = mkdtempSync(join(dir, `${name}-`));
  chmodSync(temporary, 0o711);
  const short = [
    '--rounds',
    '1',
    '--seconds',
    '1',
    '--warmup',
    '0',
    '--connections',
    '4',
    '--posts',
    '8',
    '--no-sweep',
  ];
  const env = { ...process.env, TMPDIR: temporary };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [launcher, 'measure', ...short, ...args],
      { env, timeout: 280_000 },
      (error, output, complaint) => {
        const code = error === null ? 0 : Number(error.code ?? 1);
        resolve({ code, output, complaint, left: readdirSync(temporary) });
      },
    );
  });
}

// These two tests run concurrently, because both mostly wait.
test.concurrent('the benchmark compares the service with a minimal server', async ({ expect }) => {
  const file = join(dir, 'found.json');
  const only = ['--only', 'trips,memory,reactions', '--entities', '200', '--json', file];
  const ended = await bench('short', ...only);
  expect(ended, ended.complaint).toMatchObject({ code: 0, left: [] });
  const { scenarios, findings, goals, ended: why } = readResults(readFileSync(file, 'utf8'));
  expect(why).toBe('');
  const rows = (proof: string) => findings.filter((finding) => finding.proof === proof);
  // On a busy machine, a front may look up a token again, which is one more command for 30 calls.
  expect(rows('P5').map(({ measured, goal }) => [Math.round(Number.parseFloat(measured)), goal])).toEqual(
    [0, 1, 1, 1, 1, 1, 2, 2, 2, 2].map((goal) => [goal, String(goal)]),
  );
  expect(rows('P7')).toHaveLength(4);
  expect(scenarios.map(({ name, sides }) => [name, sides.length])).toEqual([['reactions', 2]]);
  for (const side of scenarios[0]?.sides ?? []) {
    expect(side.rate).toBeGreaterThan(0);
    // Calls that arrive together share a script, and the flusher runs scripts too.
    expect(side.scripts).toBeGreaterThan(0);
    expect(side.scripts).toBeLessThan(3);
  }
  expect(goals.filter(({ proof }) => ['P2', 'P6'].includes(proof))).toHaveLength(2);
  for (const text of ['goal ≥ 0.80', 'round trips of getMe', 'a hot message with'])
    expect(ended.output).toContain(text);
}, 300_000);

test.concurrent('the benchmark ends when a call is refused', async ({ expect }) => {
  // With so few messages, one of them is edited twice within a second, which is refused.
  const few = ['--only', 'editMessageText', '--messages', '20', '--load', 'autocannon'];
  const ended = await bench('refused', ...few);
  expect(ended).toMatchObject({ code: 1, left: [] });
  expect(ended.complaint).toMatch(/bench: \d+ of \d+ requests failed under load/);
}, 300_000);

/** Tests that the minimal server of each call starts, and that it gives the same answers as the service. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readResults } from '../../src/loadtest/results.js';
import { bench } from './run_bench.js';

const calls = ['getMe', 'sendMessage', 'sendMessage_thin', 'editMessageText', 'pinChatMessage', 'reactions'];

test('the benchmark compares the cost of each call with the cost on the minimal server', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'petrel-floors-'));
  const file = join(dir, 'found.json');
  try {
    const { code, complaint } = await bench(
      dir,
      'floors',
      '--no-fixed',
      ...['--only', `${calls}`],
      ...['--json', file],
    );
    expect(code, complaint).toBe(0);
    const { scenarios } = readResults(readFileSync(file, 'utf8'));
    expect(scenarios.map(({ name, sides }) => [name, sides.length])).toEqual(calls.map((name) => [name, 2]));
    for (const { name, sides } of scenarios)
      for (const side of sides) expect(side.rate, name).toBeGreaterThan(0);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}, 300_000);

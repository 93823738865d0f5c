/** Tests that the floor of each call starts and gets the same answers as the service. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readResults } from '../../src/loadtest/results.js';

const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));
const calls = ['getMe', 'sendMessage', 'sendMessage_thin', 'editMessageText', 'pinChatMessage', 'reactions'];

test('the bench compares the cost of each call with that of its floor server', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'petrel-floors-'));
  const file = join(dir, 'found.json');
  const short = [
    '--rounds',
    '1',
    '--seconds',
    '1',
    '--warmup',
    '0',
    '--connections',
    '4',
    '--no-fixed',
    '--no-sweep',
  ];
  try {
    await promisify(execFile)(
      process.execPath,
      [launcher, 'measure', ...short, '--only', `${calls}`, '--json', file],
      {
        timeout: 280_000,
      },
    );
    const { scenarios } = readResults(readFileSync(file, 'utf8'));
    expect(scenarios.map(({ name, sides }) => [name, sides.length])).toEqual(calls.map((name) => [name, 2]));
    for (const { name, sides } of scenarios)
      for (const side of sides) expect(side.rate, name).toBeGreaterThan(0);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}, 300_000);

/** Runs the examples of `infra/docs/testing_bots.md` for other test runners. */
import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type { TestServer } from '../../src/testing/client.js';
import { onTestServer } from './server.js';

const run = promisify(execFile);
const example = (name: string) => fileURLToPath(new URL(`examples/${name}`, import.meta.url));
const pytest = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider'];
const hasPytest = spawnSync('python3', [...pytest, '--version']).status === 0;

let server: TestServer;
onTestServer((started) => {
  server = started;
});

test('the example for node:test passes', async () => {
  // Removes the variables of Vitest, because they change how node:test runs.
  const { PATH, HOME, TMPDIR } = process.env;
  const { stdout } = await run(process.execPath, ['--test', example('bot.mjs')], {
    env: { PATH, HOME, TMPDIR },
  });
  expect(stdout).toContain('pass 1');
  expect(stdout).toContain('fail 0');
}, 180_000);

test.skipIf(!hasPytest)(
  'the example for pytest passes (needs pytest)',
  async () => {
    const env = { ...process.env, PETREL_URL: server.url, PYTHONDONTWRITEBYTECODE: '1' };
    const { stdout } = await run('python3', [...pytest, example('test_bot.py')], { env });
    expect(stdout).toContain('1 passed');
  },
  180_000,
);

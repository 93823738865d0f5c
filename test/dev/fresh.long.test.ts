import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { temporaryFolder } from '../support/servers.js';

vi.setConfig({ testTimeout: 1_200_000 });

const project = fileURLToPath(new URL('../..', import.meta.url));
const notCloned = new Set(['node_modules', 'dist', '.git', '.petrel']);

let root: string;

beforeEach(() => {
  root = temporaryFolder();
  cpSync(project, join(root, 'petrel'), {
    recursive: true,
    filter: (path) => !notCloned.has(basename(path)),
  });
});
afterEach(() => rm(root, { recursive: true, force: true }));

function launch(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, ['infra/build/launch.mjs', ...args], {
    cwd: join(root, 'petrel'),
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { out: '' };
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output.out += chunk;
    });
  return { child, output, ended: once(child, 'close').then(([code]) => code as number | null) };
}

test('a fresh clone installs without running package scripts, starts, and runs a test', async () => {
  const port = await freePort();
  const { child, output, ended } = launch(['dev'], { PORT: `${port}` });
  try {
    await vi.waitFor(
      () => {
        if (child.exitCode !== null) throw new Error(output.out);
        expect(output.out).toContain('Ctrl-C stops everything');
      },
      { timeout: 900_000, interval: 200 },
    );
    expect(output.out).toContain('packages installed in');
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
  } finally {
    child.kill('SIGINT');
    await ended;
  }
  expect(existsSync(join(root, 'petrel/node_modules/msgpackr-extract/build'))).toBe(false);
  const tests = launch(['test', 'test/rules/token.test.ts']);
  expect(await tests.ended, tests.output.out).toBe(0);
  expect(tests.output.out).toMatch(/Tests +.*\d+ passed/);
});

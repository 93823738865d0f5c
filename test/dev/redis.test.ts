import { type ChildProcess, spawn } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commandOf, type LocalServer, launchServer } from '../../src/dev/processes.js';
import { startRedis } from '../../src/dev/redis.js';
import { temporaryFolder } from '../support/servers.js';

let dir: string;
let servers: LocalServer[];

beforeEach(() => {
  dir = join(temporaryFolder(), 'a folder with "quotes"');
  servers = [];
});

afterEach(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await rm(join(dir, '..'), { recursive: true, force: true });
});

async function start(port?: number): Promise<LocalServer> {
  const server = await startRedis({ dir, ...(port === undefined ? {} : { port }) });
  servers.push(server);
  return server;
}

async function use<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 0 });
  redis.on('error', () => {});
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

test('Redis under npm start still has its data after a stop and a new start', async () => {
  const first = await start();
  const settings = await use(first.url, async (redis) => {
    await redis.set('kept', 'yes');
    return redis.config('GET', 'append*', 'maxmemory-policy', 'save', 'bind');
  });
  const pairs = Object.fromEntries(
    (settings as string[]).flatMap((v, i, all) => (i % 2 ? [] : [[v, all[i + 1]]])),
  );
  expect(pairs).toMatchObject({
    appendonly: 'yes',
    appendfsync: 'always',
    'maxmemory-policy': 'noeviction',
    save: '',
    bind: '127.0.0.1',
  });
  await first.stop();
  expect(await first.exited).toBe('exit code 0');
  expect(commandOf(first.pid)).toBeUndefined();
  const second = await start();
  expect(await use(second.url, (redis) => redis.get('kept'))).toBe('yes');
});

test('after kill -9, Redis has all acknowledged writes and the same port', async () => {
  const first = await start();
  let acknowledged = 0;
  const writer = use(first.url, async (redis) => {
    for (;;) acknowledged = await redis.incr('count');
  }).catch(() => {});
  while (acknowledged < 50) await new Promise((resolve) => setTimeout(resolve, 5));
  process.kill(first.pid, 'SIGKILL');
  expect(await first.exited).toBe('signal SIGKILL');
  await writer;
  const second = await start(first.port);
  expect(second.url).toBe(first.url);
  const found = Number(await use(second.url, (redis) => redis.get('count')));
  expect(found).toBeGreaterThanOrEqual(acknowledged);
  expect(found).toBeLessThanOrEqual(acknowledged + 1);
});

test('the password of Redis is in files of mode 0600 and not in any command line', async () => {
  const { url, pid } = await start();
  const { password } = new URL(url);
  expect(password).toMatch(/^[0-9a-f]{64}$/);
  for (const name of ['password', 'redis.conf']) {
    expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
  }
  expect(await readFile(join(dir, 'redis.conf'), 'utf8')).toContain(password);
  expect(commandOf(pid)).toContain('redis.conf');
  expect(commandOf(pid)).not.toContain(password);
  await expect(use(`redis://${new URL(url).host}`, (redis) => redis.get('x'))).rejects.toThrow(/NOAUTH/);
});

test('a Redis server left by a killed run is stopped before another server uses its data', async () => {
  const left = await start();
  await use(left.url, (redis) => redis.set('kept', 'yes'));
  const next = await start();
  expect(await left.exited).toBe('exit code 0');
  expect(await use(next.url, (redis) => redis.get('kept'))).toBe('yes');
});

test('a process is not stopped if it merely reuses the pid in a stale pid file', async () => {
  await (await start()).stop();
  writeFileSync(join(dir, 'redis.pid'), `${process.pid}\n`);
  await start();
  expect(commandOf(process.pid)).toBeDefined();
});

test('if Redis fails to start, the error quotes the log of Redis', async () => {
  const first = await start();
  await expect(startRedis({ dir: join(dir, 'other'), port: first.port })).rejects.toThrow(/already in use/i);
});

test('cancelling a start stops the server, even if the server is ready immediately', async () => {
  const giveUp = startRedis({ dir: join(dir, 'third'), signal: AbortSignal.abort() });
  await expect(giveUp).rejects.toThrow('the start of Redis was cancelled');
  let child: ChildProcess | undefined;
  const launched = launchServer({
    name: 'X',
    logPath: join(dir, 'x.log'),
    spawn: () => {
      child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)']);
      return child;
    },
    isReady: () => true,
    stopSignals: [['SIGTERM', 5_000]],
    signal: AbortSignal.abort(),
  });
  await expect(launched).rejects.toThrow('the start of X was cancelled');
  expect(child?.signalCode).toBe('SIGTERM');
});

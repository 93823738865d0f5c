import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/local/processes.js';
import { findRedis } from '../../src/local/redis_install.js';
import { checkRedis, RedisCheckError } from '../../src/redis/check.js';
import { type FreshRedis, freshRedis } from '../support/servers.js';

let server: FreshRedis;
let admin: Redis;

beforeAll(async () => {
  server = await freshRedis();
  admin = new Redis(server.url);
});

afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

test('a private Redis passes without a warning', async () => {
  const { version, warnings } = await checkRedis(server.url);
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(warnings).toEqual([]);
});

test.each(['allkeys-lru', 'volatile-ttl', 'volatile-lru'])('policy %s is refused by name', async (policy) => {
  await admin.config('SET', 'maxmemory-policy', policy);
  await expect(checkRedis(server.url)).rejects.toThrow(
    new RegExp(`maxmemory-policy is ${policy}.*noeviction`),
  );
  await admin.config('SET', 'maxmemory-policy', 'noeviction');
  await checkRedis(server.url);
});

test('without the append-only file it warns and passes', async () => {
  await admin.config('SET', 'appendonly', 'no');
  expect((await checkRedis(server.url)).warnings).toEqual([expect.stringMatching(/append-only/)]);
  await admin.config('SET', 'appendonly', 'yes');
});

test('a user that may run no scripts is refused, and so is one without sharded pub/sub', async () => {
  await admin.acl('SETUSER', 'limited', 'on', '>pw', '~*', '&*', '+@all', '-eval');
  const url = `redis://limited:pw@127.0.0.1:${server.port}`;
  await expect(checkRedis(url)).rejects.toThrow(/does not run Lua scripts/);
  await admin.acl('SETUSER', 'limited', '+eval', '-spublish');
  await expect(checkRedis(url)).rejects.toThrow(/no sharded pub\/sub/);
  await admin.acl('SETUSER', 'limited', '+spublish');
  await checkRedis(url);
});

test('a wrong password, nobody there and a silent server are each one clear error without the password', async () => {
  const wrong = checkRedis(`redis://:hunter2hunter2@127.0.0.1:${server.port}`);
  await expect(wrong).rejects.toThrow(/cannot be used: .*WRONGPASS/);
  await expect(wrong).rejects.not.toThrow(/hunter2/);
  const nobody = checkRedis(`redis://127.0.0.1:${await freePort()}`);
  await expect(nobody).rejects.toThrow(/ECONNREFUSED/);
  await expect(nobody).rejects.toBeInstanceOf(RedisCheckError);

  process.kill(server.pid, 'SIGSTOP');
  try {
    const since = performance.now();
    await expect(checkRedis(server.url, 300)).rejects.toBeInstanceOf(RedisCheckError);
    expect(performance.now() - since).toBeLessThan(3_000);
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
});

test('a Redis without the command EVAL at all is refused', async () => {
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--rename-command', 'EVAL', ''];
  const child = spawn(findRedis() ?? '', args, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  try {
    const url = `redis://127.0.0.1:${port}`;
    const probe = new Redis(url, { retryStrategy: () => 20 });
    probe.on('error', () => {});
    await probe.ping();
    probe.disconnect();
    await expect(checkRedis(url)).rejects.toThrow(/does not run Lua scripts/);
  } finally {
    child.kill();
    await ended;
  }
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { createServer } from 'node:tls';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { findRedis } from '../../src/dev/redis_install.js';
import { checkRedis, RedisCheckError } from '../../src/redis/check.js';
import { connectionCause } from '../../src/rules/connection_causes.js';
import { makeCertificate } from '../support/certificates.js';
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

test('the check of Redis accepts a private server without a warning', async () => {
  const { version, warnings } = await checkRedis(server.url);
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(warnings).toEqual([]);
});

test.each(['allkeys-lru', 'volatile-ttl', 'volatile-lru'])(
  'the check of Redis refuses the eviction policy %s and names the policy',
  async (policy) => {
    await admin.config('SET', 'maxmemory-policy', policy);
    await expect(checkRedis(server.url)).rejects.toThrow(
      new RegExp(`maxmemory-policy is ${policy}.*noeviction`),
    );
    await admin.config('SET', 'maxmemory-policy', 'noeviction');
    await checkRedis(server.url);
  },
);

test('the check of Redis accepts a server without an append-only file, with a warning', async () => {
  await admin.config('SET', 'appendonly', 'no');
  expect((await checkRedis(server.url)).warnings).toEqual([expect.stringMatching(/append-only/)]);
  await admin.config('SET', 'appendonly', 'yes');
});

test('the check of Redis refuses a user that may not run scripts or use sharded pub/sub', async () => {
  await admin.acl('SETUSER', 'limited', 'on', '>pw', '~*', '&*', '+@all', '-eval');
  const url = `redis://limited:pw@127.0.0.1:${server.port}`;
  await expect(checkRedis(url)).rejects.toThrow(/does not run Lua scripts/);
  await admin.acl('SETUSER', 'limited', '+eval', '-spublish');
  await expect(checkRedis(url)).rejects.toThrow(/no sharded pub\/sub/);
  await admin.acl('SETUSER', 'limited', '+spublish');
  await checkRedis(url);
});

test('the check of Redis reports a wrong password, a closed port or a silent server, and never shows the password', async () => {
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
    expect(performance.now() - since).toBeLessThan(10_000);
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
});

test('the check of Redis refuses a server without the command EVAL', async () => {
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

describe('the error of a failed TLS connection names the cause', () => {
  const why = (url: string, timeout_ms = 3_000) =>
    checkRedis(url, timeout_ms).then(
      () => 'nothing',
      (error: Error) => error.message,
    );

  it('the TLS error says whether the certificate is untrusted or belongs to another host', async () => {
    const certificate = makeCertificate({ addresses: ['127.0.0.1'] });
    const server = createServer(certificate, (socket) => socket.end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      expect(await why(`rediss://127.0.0.1:${port}`)).toMatch(
        /its certificate is not trusted: .*NODE_EXTRA_CA_CERTS/,
      );
    } finally {
      server.close();
    }
    expect(connectionCause(Object.assign(new Error('x'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }))).toMatch(
      /certificate is for another host name/,
    );
  });

  it('a connection error distinguishes a port without TLS, a closed port and a wrong password', async () => {
    const redis = await freshRedis();
    try {
      const { port, password } = new URL(redis.url);
      // The TLS handshake contains random bytes, which Redis sometimes reads as a complete command. The test therefore
      // connects six times.
      for (let i = 0; i < 6; i++)
        expect(await why(`rediss://:${password}@127.0.0.1:${port}`, 300)).toMatch(
          /does not use TLS on this port|port (may|does) not use TLS/,
        );
      expect(await why(`redis://:wrong@127.0.0.1:${port}`)).toContain('the user or the password is wrong');
    } finally {
      await redis.stop();
    }
    expect(await why(`rediss://127.0.0.1:${await freePort()}`)).toContain('nothing listens there');
  });
});

test('the check of Redis refuses a server that is too old, with an error that names the server', async () => {
  let info = '';
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const _ of String(chunk).matchAll(/\*\d+\r\n/g)) socket.write(`$${info.length}\r\n${info}\r\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    info = 'redis_version:6.2.14\r\n';
    await expect(checkRedis(url)).rejects.toThrow(
      /: Redis 6\.2\.14 is too old, Redis 7\.0 or newer is needed$/,
    );
    info = 'redis_version:7.2.4\r\nvalkey_version:7.1.0\r\n';
    await expect(checkRedis(url)).rejects.toThrow(/: Valkey 7\.1\.0 is too old, Valkey 7\.2 or newer/);
  } finally {
    server.close();
  }
});

/**
 * Tests that a role waits for the services that it needs, and exits with a clear message if they do not become
 * available.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { startRedis } from '../../src/dev/redis.js';
import { environment } from '../support/environment.js';
import { createRole } from '../support/role_process.js';
import { type FreshDatabase, freshRedis, migratedDatabase, temporaryFolder } from '../support/servers.js';

let database: FreshDatabase;
beforeAll(async () => {
  database = await migratedDatabase();
});
afterAll(() => database?.drop());

test('if a role waits for Redis, the role becomes ready soon after Redis has started', async () => {
  const options = { dir: temporaryFolder(), appendfsync: 'no', detached: false } as const;
  const first = await startRedis(options);
  const redis = { ...first, pid: 0 };
  await first.stop();
  const role = createRole('flush', async () => environment(redis, database.url, 'x'.repeat(20)));
  const starting = role.start();
  await expect.poll(() => role.log(), { timeout: 50_000 }).toContain('waiting for Redis');
  const server = await startRedis({ ...options, port: first.port });
  try {
    await starting;
    expect(await role.stop()).toBe('exit code 0');
  } finally {
    await role.kill();
    await server.stop();
  }
});

test('if a service does not become available, the error quotes the last error of that service', async () => {
  const redis = await freshRedis();
  const env = { ...environment(redis, database.url, 'x'.repeat(20)), START_MS: '2000' };
  const none = await freePort();
  const tries = [
    [
      { REDIS_URL: `redis://127.0.0.1:${none}` },
      /Redis was not available within 2 s \(START_MS\): .*ECONNREFUSED/,
    ],
    [
      { DATABASE_URL: `postgres://nobody@127.0.0.1:${none}/x` },
      /Postgres was not available within 2 s .*ECONNREFUSED/,
    ],
  ] as const;
  try {
    await Promise.all(
      tries.map(async ([wrong, reason]) => {
        const role = createRole('flush', async () => ({ ...env, ...wrong }));
        await expect(role.start()).rejects.toThrow(reason);
      }),
    );
  } finally {
    await redis.stop();
  }
});

/** A role waits for what it needs, and ends with a sentence when that does not come. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/local/processes.js';
import { startRedis } from '../../src/local/redis.js';
import { migrate } from '../../src/postgres/migrate.js';
import { environment } from '../support/environment.js';
import { createRole } from '../support/role_process.js';
import { freshDatabase, freshRedis, temporaryFolder } from '../support/servers.js';

let database: Awaited<ReturnType<typeof freshDatabase>>;
beforeAll(async () => {
  database = await freshDatabase();
  await migrate(database.url);
});
afterAll(() => database?.drop());

test('Redis comes late: the role is ready soon after', async () => {
  const options = { dir: temporaryFolder(), appendfsync: 'no', detached: false } as const;
  const first = await startRedis(options);
  const redis = { ...first, pid: 0 };
  await first.stop();
  const role = createRole('flush', async () => environment(redis, database.url, 'x'.repeat(20)));
  const starting = role.start();
  await expect.poll(() => role.log(), { timeout: 30_000 }).toContain('waiting for Redis');
  const server = await startRedis({ ...options, port: first.port });
  try {
    await starting;
    expect(await role.stop()).toBe('exit code 0');
  } finally {
    await role.kill();
    await server.stop();
  }
});

test('what does not come is named with what was heard last, and so is what waiting does not mend', async () => {
  const redis = await freshRedis();
  const env = { ...environment(redis, database.url, 'x'.repeat(20)), START_MS: '300' };
  const none = await freePort();
  const tries = [
    [
      { REDIS_URL: `redis://127.0.0.1:${none}` },
      /Redis did not come within 0\.3 s \(START_MS\): .*ECONNREFUSED/,
    ],
    [
      { DATABASE_URL: `postgres://nobody@127.0.0.1:${none}/x` },
      /Postgres did not come within 0\.3 s .*ECONNREFUSED/,
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

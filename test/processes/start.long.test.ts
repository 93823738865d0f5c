/**
 * Tests starts of roles and commands with missing or wrong settings, without a schema, and without a folder for files.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { migrate } from '../../src/postgres/migrate.js';
import { petrel } from '../support/command.js';
import { environment } from '../support/environment.js';
import { ask } from '../support/postgres_pair.js';
import { createRole } from '../support/role_process.js';
import { freshDatabase, freshRedis, migratedDatabase, temporaryFolder } from '../support/servers.js';

test('a start reports all missing and misspelt settings together, for every LOG_LEVEL', async () => {
  const role = createRole('front', async () => ({
    ...{ PATH: process.env.PATH ?? '', LOG_LEVEL: 'silent', FILES_S3_URL: 'http://127.0.0.1:1' },
  }));
  const said = await role.start().then(
    () => '',
    (error: Error) => error.message,
  );
  for (const name of [
    'REDIS_URL or REDIS_CLUSTER',
    'DATABASE_URL',
    'TOKEN_PEPPER',
    'TOKEN_KEYS',
    'FILES_S3_BUCKET',
    'FILES_S3_SECRET',
  ])
    expect(said).toContain(`${name} is required`);
  const redis = await freshRedis();
  const own = await migratedDatabase();
  const env = environment(redis, own.url, 'x'.repeat(20));
  const close = createRole('flush', async () => ({
    ...env,
    ...{ RATE_PER_BOTS: '5/1', PETREL_PORT: '1' },
  }));
  try {
    await close.start();
    expect(close.log()).toContain('RATE_PER_BOTS is not a setting: did you mean RATE_PER_BOT?');
    expect(close.log()).toContain('PETREL_PORT is not a setting: did you mean PORT?');
  } finally {
    await close.stop();
    await redis.stop();
    await own.drop();
  }
}, 240_000);

test('a role waits until the schema exists', async () => {
  const redis = await freshRedis();
  const own = await freshDatabase();
  const env = environment(redis, own.url, 'x'.repeat(20));
  const role = createRole('flush', async () => env);
  try {
    const starting = role.start();
    await expect.poll(() => role.log(), { timeout: 90_000 }).toContain('waiting for the schema of Postgres');
    expect((await petrel(env, 'doctor')).log).toMatch(/"msg":"the database has schema 0, .*petrel migrate/);
    await migrate(own.url);
    await starting;
    expect(await role.stop()).toBe('exit code 0');
  } finally {
    await role.kill();
    await redis.stop();
    await own.drop();
  }
}, 240_000);

test('a front refuses to start if it cannot write uploaded files', async () => {
  const redis = await freshRedis();
  const own = await migratedDatabase();
  const env = { ...environment(redis, own.url, 'x'.repeat(20)), PORT: String(await freePort()) };
  const s3 = {
    FILES_S3_URL: `http://127.0.0.1:${await freePort()}`,
    ...{ FILES_S3_BUCKET: 'files', FILES_S3_KEY_ID: 'k', FILES_S3_SECRET: 's' },
  };
  try {
    for (const [wrong, reason] of [
      [{ FILES_DIR: '/dev/null/files' }, /FILES_DIR \/dev\/null\/files cannot be written: .*ENOTDIR/],
      [s3, /the bucket files of FILES_S3_URL 127\.0\.0\.1:\d+ cannot be written: .*ECONNREFUSED/],
    ] as const) {
      const front = createRole('front', async () => ({ ...env, ...wrong }));
      await expect(front.start()).rejects.toThrow(reason);
      const doctor = await petrel({ ...env, ...wrong }, 'doctor');
      expect(doctor).toMatchObject({ code: 1 });
      expect(doctor.out).toMatch(reason);
    }
  } finally {
    await redis.stop();
    await own.drop();
  }
}, 240_000);

test('`petrel doctor` checks the partitions of delivered updates if UPDATES_DAYS is set', async () => {
  const redis = await freshRedis();
  const own = await migratedDatabase();
  const env = environment(redis, own.url, 'x'.repeat(20));
  const reported = async (days: string) => {
    const { out } = await petrel({ ...env, UPDATES_DAYS: days }, 'doctor');
    return out.split('\n').filter((line) => line.startsWith('advice') && line.includes('delivered updates'));
  };
  try {
    // No flusher has created a partition. This is reported only if UPDATES_DAYS is not 0.
    expect(await reported('0')).toEqual([]);
    const missing = ['tomorrow', 'today'].map((day) =>
      expect.stringContaining(`Postgres has no partition for ${day}’s delivered updates`),
    );
    expect(await reported('2')).toEqual(missing);
    await ask(
      own.url,
      `create table kept_updates_20200101 partition of kept_updates
         for values from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00')`,
    );
    expect(await reported('2')).toEqual([
      ...missing,
      expect.stringContaining('Postgres still has expired partitions of delivered updates: 1'),
    ]);
  } finally {
    await redis.stop();
    await own.drop();
  }
}, 240_000);

test('a command can create the first person, even while `npm start` is running', async () => {
  const redis = await freshRedis();
  const own = await migratedDatabase();
  const home = temporaryFolder();
  mkdirSync(home, { recursive: true });
  const env = environment(redis, own.url, 'x'.repeat(20));
  const { REDIS_URL, DATABASE_URL, TOKEN_PEPPER, TOKEN_KEYS, ADMIN_TOKEN, ...rest } = env;
  writeFileSync(
    join(home, 'secrets.json'),
    JSON.stringify({
      ADMIN_TOKEN,
      TOKEN_PEPPER,
      TOKEN_KEYS,
      VAPID_PRIVATE_KEY: Buffer.alloc(32, 7).toString('base64url'),
    }),
  );
  writeFileSync(
    join(home, 'dev.json'),
    JSON.stringify({ redis_url: REDIS_URL, database_url: DATABASE_URL, admin_token: ADMIN_TOKEN }),
  );
  try {
    const first = await petrel(env, 'users', 'add', 'carol', '--first-name', 'Carol');
    expect(first, first.log).toMatchObject({ code: 0 });
    expect(first.out).toMatch(/^person \d+ @carol\n\d+:U[\w-]{34}\n$/);
    const beside = await petrel(
      { ...rest, PETREL_HOME: home } as Record<string, string>,
      'users',
      'add',
      'dave_2',
    );
    expect(beside, beside.log).toMatchObject({ code: 0 });
    expect(beside.log).toContain(`using the installation of npm start in ${home}`);
    expect((await petrel(env, 'users', 'add', 'carol')).log).toContain('the username carol is taken');
    expect((await petrel(env, 'users', 'add', 'a b')).log).toContain('a b cannot be a username');
    const listed = await petrel({ ...rest, PETREL_HOME: home } as Record<string, string>, 'webhooks', 'list');
    expect(listed, listed.log).toMatchObject({ code: 0 });
  } finally {
    await redis.stop();
    await own.drop();
  }
}, 240_000);

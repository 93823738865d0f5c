/** Tests with two Redis, two Postgres and real roles that nodes in one installation never use different stores. */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRedis } from '../../src/dev/redis.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { elsewhere } from '../backup/installation.js';
import { freshCluster, openAnywhere, openMasters } from '../support/cluster.js';
import { petrel } from '../support/command.js';
import { createRole } from '../support/role_process.js';
import { type FreshRedis, freshDatabase, freshRedis, temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, startService } from '../support/service.js';

const settings = { PARTITIONS: '8' };
const ends: Array<() => Promise<unknown>> = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
}, 240_000);

async function namedBy(url: string): Promise<string> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query(
    "select string_agg(value, ' ' order by name) as named from installation where name in ('ID', 'REDIS_GENERATION')",
  );
  await client.end();
  return rows[0].named;
}

function folderLike(dir: string): string {
  const folder = temporaryFolder();
  copyFileSync(join(dir, 'password'), join(folder, 'password'));
  return folder;
}

const readyz = async ({ fronts: [front] }: Service) => (await fetch(`${front.url}/readyz`)).status;

async function refusal(env: Record<string, string>): Promise<string> {
  const role = createRole('flush', async () => ({ START_MS: '1000', ...env }));
  return role.start().then(
    async () => {
      await role.stop();
      return 'it started';
    },
    (error: Error) => error.message,
  );
}

async function keysIn(redis: FreshRedis): Promise<string[]> {
  const found: string[] = [];
  for (const master of openMasters(redis)) {
    found.push(...(await master.keys('*')));
    master.disconnect();
  }
  return found;
}

let first: Service;
let second: Service;
/**
 * The second installation has the same keys and peppers, so nodes cannot distinguish the installations by their keys
 * and peppers.
 */
beforeAll(async () => {
  first = await startService({ redis: await freshRedis(), extraEnv: settings });
  ends.push(() => first.stop());
  const { TOKEN_PEPPER = '', TOKEN_KEYS = '' } = first.env;
  second = await startService({
    redis: await freshRedis(),
    extraEnv: { ...settings, TOKEN_PEPPER, TOKEN_KEYS },
  });
  ends.push(() => second.stop());
}, 240_000);

test('a node refuses to start on the Redis or the Postgres of another installation', async () => {
  const [named, other] = [await namedBy(first.databaseUrl), await namedBy(second.databaseUrl)];
  expect(named).not.toBe(other);
  const [id, otherId] = [named.split(' ')[0], other.split(' ')[0]];
  expect(await refusal(elsewhere(first.env, second.redis, first.databaseUrl))).toContain(
    `this Redis belongs to the installation ${otherId}, and DATABASE_URL to ${id}`,
  );
  expect(await refusal(elsewhere(first.env, first.redis, second.databaseUrl))).toContain(
    `this Redis belongs to the installation ${id}, and DATABASE_URL to ${otherId}`,
  );
  const rebuilt = await petrel(elsewhere(first.env, second.redis, first.databaseUrl), 'redis', 'rebuild');
  expect(rebuilt).toMatchObject({ code: 1 });
  expect(rebuilt.log).toContain('one of them is the wrong server');
  expect([await namedBy(first.databaseUrl), await namedBy(second.databaseUrl)]).toEqual([named, other]);
});

test('an empty Redis is refused while other nodes use another Redis', async () => {
  const empty = await freshRedis();
  ends.push(empty.stop);
  const named = await namedBy(first.databaseUrl);
  const env = elsewhere(first.env, empty, first.databaseUrl);
  const said = await refusal(env);
  expect(said).toMatch(
    /this Redis is empty, and 3 nodes of this installation use another one: correct REDIS_URL/,
  );
  for (const command of [['doctor'], ['webhooks', 'list'], ['redis', 'rebuild']]) {
    const ran = await petrel({ ...env, START_MS: '1000' }, ...command);
    expect(ran.code, command.join(' ')).toBe(1);
    expect(ran.log).toContain('this Redis is empty, and 3 nodes of this installation use another one');
  }
  expect(await keysIn(empty)).toEqual([]);
  expect(await namedBy(first.databaseUrl)).toBe(named);
  expect(await readyz(first)).toBe(200);
}, 240_000);

test('a node stops serving when the Redis of another installation replaces the Redis of the node', async () => {
  const dir = temporaryFolder();
  const start = (folder: string, port?: number) =>
    startRedis({ dir: folder, appendfsync: 'always', detached: false, ...(port ? { port } : {}) });
  let server = await start(dir);
  const redis: FreshRedis = { ...server, async stop() {} };
  ends.push(async () => {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  const service = await startService({ redis, extraEnv: settings });
  ends.push(() => service.stop());
  const person = await service.newUser('olga');
  await server.stop();

  const other = folderLike(dir);
  // Writes the identity of another installation while the server listens on a different port. On its usual port, the
  // nodes would adopt the server while it is empty.
  server = await start(other);
  const marking = new Redis(server.url);
  await marking.hset(makeKeys(8).installation(), { ID: 'theirs', GENERATION: 1, PARTITIONS: 8 });
  marking.disconnect();
  await server.stop();
  server = await start(other, redis.port);
  const client = new Redis(server.url);
  // Excludes the keys of the wake-up queue. This queue has its own client, whose Redis is not checked.
  const keys = async () => (await client.keys('*')).filter((key) => !key.includes('doorbell')).sort();
  const before = await keys();
  await expect
    .poll(() => service.fronts[0].log())
    .toMatch(/this Redis belongs to the installation theirs.*do not belong to the same installation/);
  expect(await readyz(service)).toBe(503);
  expect((await service.app(person, 'GET', '/api/chats')).status).toBe(503);
  expect(await keys()).toEqual(before);
  client.disconnect();
  await server.stop();
  rmSync(other, { recursive: true, force: true });

  server = await start(dir, redis.port);
  await expect.poll(() => readyz(service)).toBe(200);
  await resultOf(service.app(person, 'GET', '/api/chats'));
}, 240_000);

test('nodes recover by themselves after their common Redis loses its data', async () => {
  const dir = temporaryFolder();
  const start = (folder: string, port?: number) =>
    startRedis({ dir: folder, appendonly: false, detached: false, ...(port ? { port } : {}) });
  let server = await start(dir);
  const redis: FreshRedis = { ...server, async stop() {} };
  ends.push(async () => {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  const service = await startService({ redis, fronts: 2, extraEnv: settings });
  ends.push(() => service.stop());
  const person = await service.newUser('olga');
  const write = () => service.app(person, 'PATCH', '/api/me', { language_code: 'uz' });
  const works = () => expect.poll(async () => (await write()).status, { timeout: 60_000 }).toBe(200);
  const id = (await namedBy(service.databaseUrl)).split(' ')[0];
  expect(await namedBy(service.databaseUrl)).toBe(`${id} 1`);

  const client = new Redis(server.url);
  await client.flushall();
  client.disconnect();
  await works();
  await expect.poll(() => namedBy(service.databaseUrl)).toBe(`${id} 2`);

  await server.stop();
  server = await start(folderLike(dir), redis.port);
  await works();
  const ready = () =>
    Promise.all(service.fronts.map(async ({ url }) => (await fetch(`${url}/readyz`)).status));
  await expect.poll(ready).toEqual([200, 200]);
  expect(await namedBy(service.databaseUrl)).toMatch(/ 3$/);
}, 240_000);

test('a rebuild moves the installation to an empty Redis', async () => {
  const empty = await freshRedis();
  ends.push(empty.stop);
  const env = elsewhere(second.env, empty, second.databaseUrl);
  const roles = [...second.fronts, second.deliver, second.flush];
  const former = second.env.REDIS_URL as string;
  await Promise.all(roles.map((role) => role.stop()));
  // Only roles adopt an empty Redis for the installation. Commands never do this.
  expect((await petrel(env, 'doctor')).log).toContain(
    'this Redis is empty, and the installation has used one',
  );
  const rebuilt = await petrel(env, 'redis', 'rebuild');
  expect(rebuilt, rebuilt.log).toMatchObject({ code: 0 });
  expect(rebuilt.out).toContain('partitions   8 on 1 Redis servers, all open');
  expect(await namedBy(second.databaseUrl)).toMatch(/ 2$/);
  expect(await refusal(second.env)).toContain('this Redis is a former one of this installation');
  Object.assign(second.env, env);
  await Promise.all(roles.map((role) => role.start()));
  await second.newUser('new');

  // This node is still configured with the former Redis.
  const back = await petrel({ ...second.env, REDIS_URL: former, START_MS: '1000' }, 'redis', 'rebuild');
  expect(back).toMatchObject({ code: 1 });
  expect(back.log).toMatch(
    /a former one of this installation.*3 nodes of this installation use another one: stop/,
  );
}, 240_000);

test('a copy restored from a backup is a separate installation', async () => {
  const [redis, database] = await Promise.all([freshRedis(), freshDatabase()]);
  ends.push(redis.stop, database.drop);
  const folder = join(temporaryFolder(), 'backup');
  const saved = await petrel(first.env, 'backup', folder);
  expect(saved, saved.log).toMatchObject({ code: 0 });
  const copy = elsewhere(first.env, redis, database.url);
  const restored = await petrel(copy, 'restore', folder);
  expect(restored, restored.log).toMatchObject({ code: 0 });
  expect((await namedBy(database.url)).split(' ')[0]).not.toBe(
    (await namedBy(first.databaseUrl)).split(' ')[0],
  );
  expect(await refusal(elsewhere(copy, first.redis, database.url))).toContain(
    'one of them is the wrong server',
  );
  expect(await refusal(elsewhere(copy, redis, first.databaseUrl))).toContain(
    'one of them is the wrong server',
  );
  expect(await refusal(copy)).toBe('it started');
}, 240_000);

test('a node on another Redis Cluster is refused', async () => {
  const [cluster, empty] = await Promise.all([freshCluster(), freshCluster()]);
  ends.push(empty.stop);
  const service = await startService({ redis: cluster, extraEnv: settings });
  ends.push(() => service.stop());
  const [id] = (await namedBy(service.databaseUrl)).split(' ');
  const client = openAnywhere(cluster);
  const keys = makeKeys(8);
  for (let partition = 0; partition < 8; partition++)
    expect(await client.hget(keys.meta(partition), 'of')).toBe(id);
  expect(await client.hmget(keys.installation(), 'ID', 'GENERATION')).toEqual([id, '1']);
  client.disconnect();
  expect(await refusal(elsewhere(service.env, empty, service.databaseUrl))).toMatch(
    /this Redis is empty, and 3 nodes of this installation use another one/,
  );
  expect(await keysIn(empty)).toEqual([]);
  expect(await refusal(elsewhere(service.env, cluster, first.databaseUrl))).toMatch(
    /TOKEN_PEPPER does not contain|wrong server/,
  );
}, 240_000);

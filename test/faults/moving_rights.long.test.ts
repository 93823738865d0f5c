/**
 * Tests the requirements for moving partitions: PostgreSQL 15 or newer, and certain rights if the role in Postgres is
 * not a superuser.
 */
import { afterEach, expect, test } from 'vitest';
import { startPostgres } from '../journal/support.js';
import { petrel } from '../support/command.js';
import { ask } from '../support/postgres_pair.js';
import { postgres15Runs, startPostgres15 } from '../support/postgres15.js';
import { freshDatabase } from '../support/servers.js';
import { startService } from '../support/service.js';
import { patienceMs } from './report.js';

const ends: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const named = (url: string, name: string) => Object.assign(new URL(url), { pathname: `/${name}` }).href;

async function install(root: string) {
  await ask(root, "create role mover login password 'its-own'");
  const urls = [1, 2].map(
    (n) => Object.assign(new URL(named(root, `shard_${n}`)), { username: 'mover', password: 'its-own' }).href,
  ) as [string, string];
  for (const n of [1, 2]) await ask(root, `create database shard_${n} owner mover`);
  const database = await freshDatabase();
  const extraEnv = { PARTITIONS: '2', DATABASE_SHARDS: `1=${urls[0]},2=${urls[1]}` };
  const service = await startService({ database, extraEnv, divided: true });
  ends.push(() => service.stop());
  const owner = await service.newUser('olga');
  // There are bots in both partitions. Partition 0 is in shard 1, and partition 1 is in shard 2.
  for (let n = 0; n < 6; n++) await service.openChat(owner, await service.newBot(owner, 'b'));
  const counts = () =>
    Promise.all(
      urls.map(async (url) =>
        Number((await ask<{ count: string }>(url, 'select count(*) from messages'))[0]?.count),
      ),
    );
  await expect.poll(async () => (await counts()).reduce((a, b) => a + b), { timeout: 30_000 }).toBe(6);
  async function refused(why: RegExp, ...options: string[]): Promise<void> {
    const ran = await petrel(service.env, 'shards', 'move', '0', '2', ...options);
    expect(ran.log).toMatch(why);
    expect(ran.code).not.toBe(0);
    expect(await ask(database.url, 'select from shard_moves')).toEqual([]);
    expect(
      await ask(database.url, 'select from shard_map where paused or shard = 2 and partition = 0'),
    ).toEqual([]);
    for (const url of urls) {
      expect(await ask(url, 'select from pg_publication')).toEqual([]);
      expect(await ask(url, 'select from pg_replication_slots')).toEqual([]);
      expect(await ask(url, 'select from partitions where left_at is not null')).toEqual([]);
    }
  }
  async function moved(...options: string[]): Promise<void> {
    const ran = await petrel(service.env, 'shards', 'move', '0', '2', ...options);
    expect(ran, ran.log).toMatchObject({ code: 0 });
    expect(await counts()).toEqual([0, 6]);
    for (const each of ['pg_subscription', 'pg_replication_slots'])
      expect(await ask(root, `select from ${each}`)).toEqual([]);
  }
  return { urls, refused, moved };
}

test(
  'a Postgres role that is not a superuser can move partitions if it has the rights that the command names',
  async () => {
    const server = await startPostgres();
    ends.push(() => server.remove());
    const root = await server.emptyDatabase('root');
    await ask(root, "alter system set wal_level = 'logical'");
    await server.stop();
    await server.start();
    const { urls, refused, moved } = await install(root);
    await refused(/DATABASE_SHARDS 1 may not replicate: run ..?alter role … replication/);
    await ask(root, 'alter role mover replication');
    await refused(/DATABASE_SHARDS 2 may not subscribe: run ..?grant pg_create_subscription to …/);
    await ask(root, 'grant pg_create_subscription to mover');
    const open = new URL(urls[0]);
    open.password = '';
    await refused(/URL of DATABASE_SHARDS 1 has no password/, '--from', open.href);
    await moved('--from', urls[0].replace('127.0.0.1', 'localhost'));
  },
  patienceMs,
);

test.runIf(postgres15Runs)(
  "on PostgreSQL 15 a move is refused unless the target's role is a superuser",
  async () => {
    const server = await startPostgres15();
    ends.push(() => server.stop());
    const { refused, moved } = await install(server.url);
    await ask(server.url, 'alter role mover replication');
    await refused(/PostgreSQL 15 allows it to superusers only/);
    await ask(server.url, 'alter role mover superuser');
    await moved();
  },
  patienceMs,
);

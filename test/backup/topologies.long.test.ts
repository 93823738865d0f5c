/**
 * Restores a backup of a single Redis server to a cluster, and a backup of a cluster to a single server. All rows and
 * keys are the same after each restore, and the service continues. The kind of Redis in the test run decides which
 * restore comes first.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { freshCluster, openMasters } from '../support/cluster.js';
import { petrel } from '../support/command.js';
import { type FreshRedis, freshDatabase, freshRedis, temporaryFolder } from '../support/servers.js';
import {
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { contentOf, elsewhere } from './installation.js';

const folder = temporaryFolder();
const ends: Array<() => Promise<unknown>> = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
  rmSync(folder, { recursive: true, force: true });
});

const settings = { PARTITIONS: '16' };

/** Returns the value of a key as a text that does not depend on how the server stores the value. */
async function contentOfKey(redis: Redis, key: string): Promise<string> {
  const type = await redis.type(key);
  const shown = (parts: readonly (string | Buffer)[]) =>
    parts.map((part) => Buffer.from(part).toString('base64'));
  switch (type) {
    case 'string':
      return `string ${(await redis.getBuffer(key))?.toString('base64')}`;
    case 'hash': {
      // Leaves out the fields that a restore changes: the Redis run, the version and the installation of each
      // partition, and the id and the generation of the installation.
      const later = key.endsWith('}:meta')
        ? ['run', 'ver', 'of']
        : key.endsWith('}:installation')
          ? ['ID', 'GENERATION']
          : [];
      const names = (await redis.hkeysBuffer(key))
        .filter((name) => !later.includes(String(name)))
        .sort(Buffer.compare);
      const values = await Promise.all(names.map((name) => redis.hgetBuffer(key, name)));
      return `hash ${shown(names)} ${shown(values.map((value) => value ?? ''))}`;
    }
    case 'list':
      return `list ${shown(await redis.lrangeBuffer(key, 0, -1))}`;
    case 'set':
      return `set ${shown((await redis.smembersBuffer(key)).sort(Buffer.compare))}`;
    case 'zset':
      return `zset ${shown(await redis.zrangeBuffer(key, 0, '-1', 'WITHSCORES'))}`;
    case 'stream': {
      const entries = await redis.xrangeBuffer(key, '-', '+');
      const facts = (await redis.xinfo('STREAM', key)) as unknown[];
      const last = facts[facts.indexOf('last-generated-id') + 1];
      return `stream up to ${last} ${entries.map(([id, fields]) => `${id} ${shown(fields)}`)}`;
    }
    default:
      return `${type}?`;
  }
}

/**
 * The test does not compare keys whose remaining time to live is shorter than this, because they may expire before the
 * test reads them.
 */
const soon_ms = 300_000;

/** The keys of running processes and of the wake queue, which are not part of a backup. */
const ofProcesses = /:doorbell:|:rings$|:flushers$/;

async function keysOf(redis: FreshRedis): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const master of openMasters(redis)) {
    for (const key of await master.keys('*')) {
      const left = await master.pttl(key);
      if (ofProcesses.test(key) || left === -2 || (left > 0 && left < soon_ms)) continue;
      found.set(key, `${left > 0 ? 'ends' : 'stays'} ${await contentOfKey(master, key)}`);
    }
    master.disconnect();
  }
  return found;
}

interface Filled {
  readonly service: Service;
  readonly owner: TestUser;
  readonly bot: TestBot;
  readonly group: number;
}

const history = async (of: Service, { owner, group }: Filled): Promise<string[]> =>
  (await itemsOf(of.app(owner, 'GET', `/api/chats/${group}/messages?limit=100`))).map(
    ({ message_id, text }: { message_id: number; text?: string }) => `${message_id} ${text}`,
  );

async function filled(): Promise<Filled> {
  const service = await startService({ extraEnv: settings });
  ends.push(() => service.stop());
  const owner = await service.newUser('olga');
  const bot = await service.newBot(owner, 'b');
  await service.openChat(owner, bot);
  const groups: number[] = [];
  for (let i = 0; i < 12; i++) {
    const chat = await service.newGroup(owner, `g${i}`, [bot]);
    groups.push(chat);
    await resultOf(service.app(owner, 'POST', `/api/chats/${chat}/messages`, { text: `/to_all ${i} \t 🙂` }));
    const { message_id } = await resultOf(
      service.bot(bot, 'sendMessage', { chat_id: chat, text: `said ${i}` }),
    );
    if (i % 3 === 0) await resultOf(service.bot(bot, 'deleteMessage', { chat_id: chat, message_id }));
  }
  const { message_id } = await resultOf(
    service.bot(bot, 'sendMessage', { chat_id: owner.id, text: 'pinned' }),
  );
  await resultOf(service.bot(bot, 'pinChatMessage', { chat_id: owner.id, message_id }));
  return { service, owner, bot, group: groups[1] as number };
}

let copies = 0;
async function carry(from: Record<string, string>, redis: FreshRedis, databaseUrl: string) {
  const copy = join(folder, `${++copies}`);
  const env = elsewhere(from, redis, databaseUrl);
  const saved = await petrel(from, 'backup', copy);
  expect(saved, saved.log).toMatchObject({ code: 0 });
  expect(saved.out).toMatch(from.REDIS_CLUSTER ? /redis {8}3 masters/ : /redis {8}one server/);
  const restored = await petrel(env, 'restore', copy);
  expect(restored, restored.log).toMatchObject({ code: 0 });
  return env;
}

type Stores = readonly [redis: FreshRedis, databaseUrl: string];

/**
 * Compares the restored stores with the saved stores. Reads the saved stores only after the backup, because opening an
 * installation for a backup can raise the incarnations of its partitions.
 */
async function same(saved: Stores, restored: Stores): Promise<void> {
  const [keys, found] = [await keysOf(saved[0]), await keysOf(restored[0])];
  expect(keys.size).toBeGreaterThan(60);
  expect([...found.keys()].sort()).toEqual([...keys.keys()].sort());
  for (const [key, value] of keys) expect(found.get(key), key).toBe(value);
  const [rows, copied] = [await contentOf(saved[1]), await contentOf(restored[1])];
  rows.delete('partitions');
  expect([...rows.values()].flat().length).toBeGreaterThan(100);
  for (const [table, expected] of rows) expect(copied.get(table), table).toEqual(expected);
}

test('restoring from one Redis server to a cluster, or from a cluster to one server, keeps every row and key', async () => {
  const first = await filled();
  const { service } = first;
  const said = await history(service, first);
  expect(said.length).toBeGreaterThan(1);
  await Promise.all([...service.fronts, service.deliver].map((role) => role.stop()));
  await service.flush.stop();
  const [there, back] = service.redis.cluster ? [freshRedis, freshCluster] : [freshCluster, freshRedis];
  const [away, awayDatabase] = await Promise.all([there(), freshDatabase()]);
  ends.push(away.stop, awayDatabase.drop);
  const env = await carry(service.env, away, awayDatabase.url);
  await same([service.redis, service.databaseUrl], [away, awayDatabase.url]);

  const [redis, database] = await Promise.all([back(), freshDatabase()]);
  await carry(env, redis, database.url);
  await same([away, awayDatabase.url], [redis, database.url]);
  const { TOKEN_PEPPER = '', TOKEN_KEYS = '' } = service.env;
  const extraEnv = { ...settings, TOKEN_PEPPER, TOKEN_KEYS };
  const again = await startService({ redis, database, extraEnv });
  ends.push(again.stop);
  expect(await history(again, first)).toEqual(said);
  await resultOf(again.bot(first.bot, 'sendMessage', { chat_id: first.group, text: 'goes on' }));
}, 300_000);

/**
 * Provides complete stores in this process, on a fresh Redis and a fresh database. A test can create any number of
 * nodes, and can stop each node at its hooks.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { createFlusher } from '../../src/journal/flusher.js';
import { Recovery } from '../../src/journal/recovery.js';
import { limits } from '../../src/limits.js';
import { createPool, type Pool } from '../../src/postgres/pool.js';
import { holding, oneShard, type Shards } from '../../src/postgres/shards.js';
import { asDatabase, type Database, type ShardDatabase, type Sql, sqlOver } from '../../src/postgres/sql.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { type Hints, RedisHints } from '../../src/redis/hints.js';
import { Runner, type ScriptRunner } from '../../src/redis/scripts/scripts.js';
import type { Profile } from '../../src/store/core/codec.js';
import { type ChatRef, directChat, type Keys, makeKeys } from '../../src/store/core/keys.js';
import { createSecrets } from '../../src/store/core/secrets.js';
import type { NewMessage, Sender } from '../../src/store/messages/messages.js';
import { createStore, type Store } from '../../src/store/store.js';
import type { UpdateEntry } from '../../src/store/updates/queues.js';
import { systemTime, type Time } from '../../src/time.js';
import { type RedisServer, startRedis } from '../journal/support.js';
import { createTokenSearch } from './plain_tokens.js';
import type { RunningTime } from './running_time.js';
import { migratedDatabase } from './servers.js';
import { divideDatabase, openTestShards } from './shards.js';
import { ready_ms_max } from './times.js';

export interface Hooks {
  call: (name: string, run: () => Promise<unknown>, partition: number) => Promise<unknown>;
  query: (text: string, run: () => Promise<unknown>) => Promise<unknown>;
  /** Called for each subscription to hints. `run` makes the subscription. */
  listen: (channel: string, run: () => Promise<() => void>) => Promise<() => void>;
  /** Returns false to drop a hint before it reaches this node. */
  hint: (channel: string, text: string) => boolean;
  wake: (bot: number) => void;
}

export interface TestNode {
  readonly store: Store;
  readonly runner: ScriptRunner;
  readonly connection: RedisConnection;
  readonly pool: Pool;
  readonly shards: Shards;
  readonly db: Database;
  /** Queries the flushed rows in all shards that have partitions, one after the other. */
  readonly written: Sql;
  readonly keys: Keys;
  readonly hooks: Hooks;
  readonly errors: unknown[];
  close(): Promise<void>;
}

export interface TestCluster {
  readonly redis: RedisServer;
  readonly databaseUrl: string;
  /** Partition p is in the shard with the index p % length, or in the database itself if there are no shards. */
  readonly shardUrls: readonly string[];
  readonly keys: Keys;
  node(reactorsListed?: number): Promise<TestNode>;
  /** Writes every journal to Postgres. Written entities may be evicted afterwards. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export const hotTtlMs = 3_600_000;
const pepper = randomBytes(24).toString('hex');
const keyRing = [{ id: 'k1', key: randomBytes(32) }];

const open: Hooks = {
  call: (_, run) => run(),
  query: (_, run) => run(),
  listen: (_, run) => run(),
  hint: () => true,
  wake: () => undefined,
};

async function openNode(
  redisUrl: string,
  databaseUrl: string,
  keys: Keys,
  reactorsListed: number,
  shardUrls: readonly string[],
  time: Time,
): Promise<TestNode> {
  const hooks = { ...open };
  const errors: unknown[] = [];
  const pool = createPool({ url: databaseUrl, max: 4, name: 'test', connectMsMax: ready_ms_max });
  const hooked = (real: Database): Database => ({
    ...sqlOver((text, params) => hooks.query(text, () => real.query(text, params)) as Promise<never[]>),
    transaction: (work) => hooks.query('transaction', () => real.transaction(work)) as never,
  });
  const hookedShard = (real: ShardDatabase): ShardDatabase => ({
    ...hooked(real),
    whileCurrent: (partitions) => hooked(real.whileCurrent(partitions)),
  });
  const db = hookedShard(asDatabase(pool));
  const opened =
    shardUrls.length === 0
      ? { shards: oneShard(pool, db, keys.partitions.count), close: async () => undefined }
      : await openTestShards({ pool, db }, shardUrls, keys.partitions.count, hookedShard);
  const { shards } = opened;
  const connection = new RedisConnection({ url: redisUrl, name: 'test' });
  const hints = new RedisHints(redisUrl, 'test', () => undefined);
  const recovery = new Recovery({
    shards: () => shards,
    keys,
    connection,
    highWater: 10_000,
    bytesMax: 64 * 1024 ** 2,
    runner: () => runner,
  });
  const runner: ScriptRunner = new Runner({
    connection,
    recover: (partition, runId) => recovery.recover(partition, runId),
  });
  const store = createStore({
    db,
    shards,
    scripts: {
      partitionsWith: (count, keysOf) => runner.partitionsWith(count, keysOf),
      runIdOf: (partition) => runner.runIdOf(partition),
      times: runner.times,
      troubles: runner.troubles,
      isFull: (partition) => runner.isFull(partition),
      call: ((name: never, partition: number, at: never, args: never) =>
        hooks.call(name, () => runner.call(name, partition, at, args), partition)) as ScriptRunner['call'],
    },
    hints: {
      listen: (channel, listener) =>
        hooks.listen(channel, () =>
          hints.listen(channel, (bytes) => {
            if (hooks.hint(channel, String(bytes))) listener(bytes);
          }),
        ),
      close: () => hints.close(),
    } satisfies Hints,
    keys,
    secrets: createSecrets([pepper], keyRing),
    hotTtlMs,
    time,
    wake: (bot) => hooks.wake(bot),
    reactorsListed,
    onError: (error) => errors.push(error),
  });
  await connection.ready(ready_ms_max);
  return {
    ...{ store, runner, connection, pool, shards, db, keys, hooks, errors },
    written: sqlOver(async <T>(text: string, params?: readonly unknown[]) => {
      const found = await Promise.all(holding(shards).map((shard) => shard.db.query<T>(text, params)));
      return found.flat();
    }),
    async close() {
      Object.assign(hooks, open);
      store.polls.close();
      store.streams.close();
      await Promise.all([store.auth.stop(), store.sweep.stop()]);
      hints.close();
      await connection.close();
      await opened.close();
      await pool.close();
    },
  };
}

/**
 * Starts a separate Redis with an append-only file, and a separate migrated database. `shardCount` adds this many
 * shards for flushed rows. `time` is the clock of all stores. Redis and the connections use the real clock.
 */
export async function startCluster(
  partitions = 4,
  shardCount = Number(process.env.TEST_SHARDS ?? 0),
  time = systemTime,
): Promise<TestCluster> {
  const [redis, database] = await Promise.all([startRedis(), migratedDatabase()]);
  const divided = shardCount > 0 ? await divideDatabase(database.url, shardCount, partitions) : null;
  const keys = makeKeys(partitions);
  const nodes: TestNode[] = [];
  const node = async (reactorsListed: number = limits.reactors_listed_max) => {
    const made = await openNode(redis.url, database.url, keys, reactorsListed, divided?.urls ?? [], time);
    nodes.push(made);
    return made;
  };
  return {
    redis,
    databaseUrl: database.url,
    shardUrls: divided?.urls ?? [],
    keys,
    node,
    async flush() {
      const { connection, runner, shards } = await node();
      const flusher = createFlusher({ connection, runner, shards, keys, hotTtlMs, intervalMs: 1 });
      flusher.start();
      await flusher.stop({ drain: true });
    },
    async close() {
      await Promise.all(nodes.map((each) => each.close()));
      const plain = await createTokenSearch(database.url, redis.dir, [], anyToken)();
      for (const url of divided?.urls ?? [])
        plain.push(...(await createTokenSearch(url, undefined, [], anyToken)()));
      await redis.remove();
      await Promise.all([database.drop(), divided?.drop()]);
      expect(plain, 'places with tokens in plain text').toEqual([]);
    },
  };
}

/** Lets `ms` pass on the clock of these nodes. The nodes renew their token leases as they do in real time. */
export async function pass(time: RunningTime, ms: number, nodes: readonly TestNode[]): Promise<void> {
  const step = limits.auth_lease_renew_ms;
  for (let left = ms; left > 0; left -= step) {
    time.skip(Math.min(left, step));
    // Redis answers in order, so an earlier renewal is complete when the ping is answered. A second ping lets the nodes
    // acknowledge a new epoch.
    for (const _ of ['renewed', 'acknowledged']) {
      await new Promise((resolve) => setImmediate(resolve));
      await Promise.all(nodes.map(({ connection }) => connection.client.ping()));
    }
  }
}

/**
 * Treats every text that has the form and the checksum of a token as an issued token. No store may contain such a text.
 */
const anyToken = { has: () => true };
let names = 0;
export const uniqueName = (): string => `name_${++names}_${randomBytes(3).toString('hex')}`;

export interface Person {
  readonly id: number;
  readonly token: string;
  readonly sender: Sender;
}

export async function makeUser({ store }: TestNode): Promise<Person> {
  const { user, token } = await store.users.create({ username: uniqueName(), first_name: 'Ann' });
  const profile: Profile = { id: user.id, n: user.firstName };
  return { id: user.id, token, sender: { id: user.id, isBot: false, profile } };
}

export async function makeBot({ store }: TestNode, owner: Person): Promise<Person> {
  const { bot, token } = await store.bots.create(owner.id, uniqueName(), 'Bot');
  const profile: Profile = { id: bot.id, bot: 1, n: bot.name, u: bot.username };
  return { id: bot.id, token, sender: { id: bot.id, isBot: true, profile } };
}

export async function makeDirect(node: TestNode) {
  const user = await makeUser(node);
  const bot = await makeBot(node, user);
  await node.store.chats.openDirect(bot.id, user.id);
  return { user, bot, chat: directChat(bot.id, user.id) };
}

export const text = (value: string, button?: string): NewMessage => ({
  content: { text: value },
  markup: button === undefined ? null : { inline_keyboard: [[{ text: 'b', callback_data: button }]] },
  flags: 0,
  replyTo: 0,
  allowMissingReply: false,
});

export const poll = ({ store }: TestNode, bot: Person, offset = 0, timeout = 0): Promise<UpdateEntry[]> =>
  store.polls.poll(bot.id, { offset, limit: 100, timeout, mask: null, onGone: () => undefined });

export const shown = (updates: readonly UpdateEntry[]) =>
  updates.flatMap(({ message }) => message.record.content.text ?? []);

/** Evicts records, as if their time to live had expired. */
export async function evict(node: TestNode, ...keys: string[]): Promise<void> {
  await node.connection.client.del(...keys);
}

export const chatKeys = (keys: Keys, chat: ChatRef, ...messages: number[]): string[] => [
  keys.chat(chat),
  ...messages.map((id) => keys.message(chat, id)),
];

export function within<T>(ms: number, promise: Promise<T>): Promise<T | 'late'> {
  return Promise.race([promise, sleep(ms, 'late' as const)]);
}

/**
 * Sets when the last edit of this message was made. A time in the future keeps a pending edit pending, and a time in
 * the past makes the edit due.
 */
export async function moveLastEdit(
  {
    keys,
    connection,
  }: { readonly keys: Keys; readonly connection: { readonly client: Pick<Redis, 'eval'> } },
  chat: ReturnType<typeof directChat>,
  id: number,
  ms: number,
): Promise<void> {
  const [message, due] = [keys.message(chat, id), keys.editsDue(keys.partitions.of(chat.id))];
  await connection.client.eval(
    `local record = redis.call('GET', KEYS[1])
     local at, header = cmsgpack.unpack_one(record)
     header[4] = tonumber(ARGV[1])
     redis.call('SET', KEYS[1], cmsgpack.pack(header) .. (at < 0 and '' or record:sub(at + 1)), 'KEEPTTL')
     for _, place in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do redis.call('ZADD', KEYS[2], ARGV[1], place) end`,
    ...([2, message, due, ms] as const),
  );
}

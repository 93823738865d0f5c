/**
 * Provides a private Redis and Postgres for the tests of write-behind. Also contains helpers that fill a journal in the
 * same way as the scripts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import pg from 'pg';
import { startPostgres as startLocalPostgres } from '../../src/dev/postgres.js';
import { freePort } from '../../src/dev/processes.js';
import { createFlusher, type Flusher, type FlusherOptions } from '../../src/journal/flusher.js';
import { Recovery } from '../../src/journal/recovery.js';
import { migrate } from '../../src/postgres/migrate.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { oneShard, type Shards } from '../../src/postgres/shards.js';
import { asDatabase } from '../../src/postgres/sql.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { Runner, type ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { messageKinds, packMessage, unpackMessage } from '../../src/store/core/codec.js';
import { type ChatRef, chatText, directChat, type Keys, makeKeys } from '../../src/store/core/keys.js';
import { memoryFolder } from '../support/servers.js';
import { ready_ms_max } from '../support/times.js';

export interface RedisServer {
  readonly url: string;
  readonly dir: string;
  stop(signal?: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

export async function startRedis(...settings: string[]): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'petrel-redis-'));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const stop = async (signal: NodeJS.Signals = 'SIGKILL') => {
    const ended = child && child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null;
    child?.kill(signal);
    await ended;
  };
  const start = async () => {
    const base = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--save', ''];
    const args = [...base, '--appendonly', 'yes', '--appendfsync', 'no', ...settings];
    child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
    let log = '';
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      log += chunk;
      if (log.includes('Ready to accept connections')) break;
    }
    // Leaving the loop closes the pipe from Redis. Redis keeps running, and nobody reads its later output.
    if (!log.includes('Ready')) throw new Error(`redis-server did not start: ${log}`);
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    dir,
    stop,
    start,
    async remove() {
      await stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export interface PostgresServer {
  start(): Promise<void>;
  stop(): Promise<void>;
  remove(): Promise<void>;
  database(name: string): Promise<string>;
  emptyDatabase(name: string): Promise<string>;
}

/**
 * Starts a Postgres that is not durable, because no test in this folder simulates a power failure. A restarted server
 * keeps its port.
 */
export async function startPostgres(): Promise<PostgresServer> {
  const home = memoryFolder();
  const launch = (port?: number) =>
    startLocalPostgres({
      dir: join(home, 'postgres'),
      durable: false,
      detached: false,
      ...(port === undefined ? {} : { port }),
    });
  let server = await launch();
  const { url, port } = server;
  let template: Promise<unknown> | undefined;
  const createDatabase = async (name: string, options = '') => {
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`create database ${client.escapeIdentifier(name)} ${options}`);
    await client.end();
    return Object.assign(new URL(url), { pathname: `/${name}` }).href;
  };
  const emptyDatabase = (name: string) => createDatabase(name);
  return {
    async start() {
      server = await launch(port);
    },
    stop: () => server.stop(),
    async remove() {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    },
    emptyDatabase,
    async database(name) {
      template ??= emptyDatabase('migrated').then((url) => migrate(url));
      await template;
      return createDatabase(name, 'template migrated');
    },
  };
}

/** Builds `src/` as plain JavaScript in a folder beside the scripts, so that child processes can import the program. */
export async function buildProgram(): Promise<{ folder: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-program-'));
  const root = fileURLToPath(new URL('../../', import.meta.url));
  for (const name of ['lua', 'node_modules', 'package.json'])
    symlinkSync(join(root, name), join(folder, name));
  await build({
    entryPoints: [join(root, 'src/**/*.ts')],
    outdir: join(folder, 'dist'),
    outbase: join(root, 'src'),
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  });
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export const highWater = 100_000;
export const bytesMax = 64 * 1024 ** 2;
export const hotTtlMs = 3_600_000;

export interface Node {
  readonly connection: RedisConnection;
  readonly runner: ScriptRunner;
  readonly recovery: Recovery;
  readonly pool: Pool;
  readonly shards: Shards;
  readonly keys: Keys;
  flusher(options?: Partial<FlusherOptions>): Flusher;
  stopFlushers(): Promise<void>;
  close(): Promise<void>;
}

export async function openNode(
  redisUrl: string,
  postgresUrl: string,
  partitions = 4,
  trustSeals = false,
): Promise<Node> {
  const keys = makeKeys(partitions);
  const connection = new RedisConnection({ url: redisUrl, name: 'test' });
  const pool = createPool({ url: postgresUrl, max: 4, name: 'test' });
  let runner: ScriptRunner;
  const shards = oneShard(pool, asDatabase(pool), partitions);
  const recovery = new Recovery({
    ...{ shards: () => shards, keys, connection, highWater, bytesMax, runner: () => runner, trustSeals },
  });
  runner = new Runner({ connection, recover: (partition, runId) => recovery.recover(partition, runId) });
  await connection.ready(ready_ms_max);
  const flushers: Flusher[] = [];
  const stopFlushers = async () => {
    await Promise.all(flushers.map((flusher) => flusher.stop({ msMax: 2_000 })));
  };
  return {
    connection,
    runner,
    recovery,
    pool,
    shards,
    keys,
    flusher(options = {}) {
      const made = createFlusher({ connection, runner, shards, keys, hotTtlMs, intervalMs: 5, ...options });
      flushers.push(made);
      return made;
    },
    stopFlushers,
    async close() {
      await stopFlushers();
      await connection.close();
      await pool.close();
    },
  };
}

/** Changes version, record, chat and journal in one step, as the scripts that send messages do. Returns the version. */
const change = `
local meta, journal, record, chat = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local version = redis.call('HINCRBY', meta, 'ver', 1)
local packed = cmsgpack.pack(version)
local image = ARGV[2] .. packed .. ARGV[3]
redis.call('SET', record, image)
redis.call('HSET', chat, 's', ARGV[4], 'v', ('%.0f'):format(version))
redis.call('PERSIST', chat)
redis.call('XADD', journal, ('%.0f-0'):format(version), 'k', ARGV[1], 'i', image)
return ('%.0f'):format(version)`;

export const partitionOf = (node: Node, chat: ChatRef): number => node.keys.partitions.of(chat.id);

export async function putMessage(
  node: Node,
  chat: ChatRef,
  messageId: number,
  text?: string,
): Promise<number> {
  const { keys } = node;
  const partition = partitionOf(node, chat);
  const deleted = text === undefined;
  const whole = packMessage({
    version: 1,
    date: 1_700_000_000,
    editedAt: 0,
    sender: 7,
    kind: deleted ? messageKinds.deleted : messageKinds.text,
    flags: 0,
    content: deleted ? {} : { text },
    markup: null,
    origin: {},
    post: 0,
  });
  const version = await node.connection.client.eval(
    change,
    4,
    keys.meta(partition),
    keys.journal(partition),
    keys.message(chat, messageId),
    keys.chat(chat),
    `msg:${chatText(chat)}:${messageId}`,
    whole.subarray(0, 2),
    whole.subarray(3),
    messageId,
  );
  return Number(version);
}

export async function putEntry(
  node: Node,
  partition: number,
  entity: string,
  image: Buffer,
): Promise<number> {
  const { client } = node.connection;
  const version = await client.hincrby(node.keys.meta(partition), 'ver', 1);
  await client.xadd(node.keys.journal(partition), `${version}-0`, 'k', entity, 'i', image);
  return version;
}

/** A direct chat of the bot `bot`. All chats of one bot are in one partition. */
export const chatOf = (bot: number, user = 5): ChatRef => directChat(bot, user);

const allMessages = statement(
  'test_messages',
  'select chat_id, user_id, message_id, version, record, deleted_at from messages order by 1, 2, 3',
);

export interface MessageRow {
  chat_id: number;
  user_id: number;
  message_id: number;
  version: number;
  record: Buffer | null;
  deleted_at: Date | null;
}

export const messageRows = async (pool: Pool): Promise<MessageRow[]> =>
  (await pool.query<MessageRow>(allMessages)).rows;

export const texts = (rows: readonly MessageRow[]): Array<string | null | undefined> =>
  rows.map((row) => (row.record === null ? null : unpackMessage(row.record).content.text));

export async function eventually(what: string, holds: () => Promise<boolean> | boolean, msMax = 40_000) {
  const end = performance.now() + msMax;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${msMax} ms: ${what}`);
    await sleep(10);
  }
}

export const journalEmpty = async (node: Node): Promise<boolean> => {
  const { client } = node.connection;
  const all = Array.from({ length: node.keys.partitions.count }, (_, p) => client.xlen(node.keys.journal(p)));
  return (await Promise.all(all)).every((length) => length === 0);
};

/**
 * Makes a gate for a flusher. `reached` resolves when the flusher is paused, and `open` lets it continue permanently.
 */
export function gate() {
  let reach = () => {};
  let pass = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    pass = resolve;
  });
  return {
    reached,
    open: () => pass(),
    async wait() {
      reach();
      await opened;
    },
  };
}

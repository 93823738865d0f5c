/** Reads Redis' counters: CPU time, scripts, versions, bytes and journal lengths. */
import { RedisConnection } from '../../src/redis/connection.js';
import { type Keys, makeKeys } from '../../src/store/core/keys.js';

export interface RedisCost {
  /** The user and system CPU time of the Redis server, in seconds. */
  readonly cpuSeconds: number;
  /** The number of EVALSHA calls by all clients, including the flusher. */
  readonly scripts: number;
  /** The number of commands by all clients, including commands inside scripts. */
  readonly commands: number;
}

export interface RedisWatch {
  cost(): Promise<RedisCost>;
  /** The number of journal entries in all partitions that Postgres does not have yet. */
  journalLength(): Promise<number>;
  /**
   * The number of versions that all partitions have assigned. Each change of a record increments its partition's
   * version counter.
   */
  versions(): Promise<number>;
  /**
   * The bytes of all keys, expiry entries and hash tables. Leaves out client buffers, the append-only file and scripts,
   * and also the change logs, which exist only for seconds or minutes.
   */
  dataBytes(): Promise<number>;
  /**
   * Deletes the remembered request ids. They expire only after a minute and would count as data until then. Returns how
   * many were deleted.
   */
  forgetRequests(): Promise<number>;
  readonly client: RedisConnection['client'];
  readonly keys: Keys;
  readonly connection: RedisConnection;
  close(): Promise<void>;
}

const isLog = (key: string) => key.includes(':changes:');

function readPairs(list: readonly unknown[]): Map<string, unknown> {
  const pairs = new Map<string, unknown>();
  for (let i = 0; i < list.length; i += 2) pairs.set(String(list[i]), list[i + 1]);
  return pairs;
}

function commandsRun(stats: string): number {
  return [...stats.matchAll(/^cmdstat_[^:]+:calls=(\d+)/gm)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  );
}

export async function watchRedis(url: string, partitions: number): Promise<RedisWatch> {
  const connection = new RedisConnection({ url, name: 'bench' });
  await connection.ready(10_000);
  const { client } = connection;
  // Disables rewrites of the append-only file. A rewrite would add CPU time to only some of the compared rounds.
  await client.config('SET', 'auto-aof-rewrite-percentage', '0');
  const keys = makeKeys(partitions);
  const number = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
  return {
    async cost() {
      const [cpu, commands] = await Promise.all([client.info('cpu'), client.info('commandstats')]);
      return {
        cpuSeconds: number(cpu, /^used_cpu_user:([\d.]+)/m) + number(cpu, /^used_cpu_sys:([\d.]+)/m),
        scripts: number(commands, /^cmdstat_evalsha:calls=(\d+)/m),
        commands: commandsRun(commands),
      };
    },
    async journalLength() {
      const lengths = await Promise.all(
        Array.from({ length: partitions }, (_, partition) => client.xlen(keys.journal(partition))),
      );
      return lengths.reduce((a, b) => a + b, 0);
    },
    async versions() {
      const each = await Promise.all(
        Array.from({ length: partitions }, (_, partition) => client.hget(keys.meta(partition), 'ver')),
      );
      return each.reduce((sum, version) => sum + Number(version ?? 0), 0);
    },
    async dataBytes() {
      // Scans all keys, because Redis keeps some expired keys in memory until a command accesses them. Asks for small
      // replies, because MEMORY STATS could count the buffer of a large reply as data.
      let logs = 0;
      for (let cursor = '0'; ; ) {
        const [next, found] = await client.scan(cursor, 'COUNT', 100);
        const sizes = found.filter(isLog).map((key) => client.memory('USAGE', key));
        for (const size of await Promise.all(sizes)) logs += size ?? 0;
        if (next === '0') break;
        cursor = next;
      }
      const stats = readPairs((await client.call('MEMORY', 'STATS')) as unknown[]);
      const tables = readPairs((stats.get('db.0') ?? []) as unknown[]);
      return [...tables.values(), stats.get('dataset.bytes')].reduce<number>(
        (sum, n) => sum + Number(n),
        -logs,
      );
    },
    async forgetRequests() {
      let count = 0;
      for (let cursor = '0'; ; ) {
        const [next, found] = await client.scan(cursor, 'MATCH', '*:req:*', 'COUNT', 10_000);
        if (found.length > 0) count += await client.del(...found);
        if (next === '0') return count;
        cursor = next;
      }
    },
    client,
    keys,
    connection,
    close: () => connection.close(),
  };
}

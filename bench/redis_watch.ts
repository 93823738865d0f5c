/** What Redis did meanwhile: its CPU time, the scripts it ran, and what waits in the journals. */
import { connectRedis } from '../src/redis/connection.js';
import { makeKeys } from '../src/store/keys.js';

export interface RedisCost {
  /** user and system time of the whole server, in seconds */
  readonly cpuSeconds: number;
  /** EVALSHA calls of all clients, the flusher's among them */
  readonly scripts: number;
}

export interface RedisWatch {
  cost(): Promise<RedisCost>;
  /** Entries that Postgres does not have yet, all partitions together. */
  journalLength(): Promise<number>;
  close(): Promise<void>;
}

export async function watchRedis(url: string, partitions: number): Promise<RedisWatch> {
  const connection = connectRedis({ url, name: 'bench' });
  await connection.ready(10_000);
  const { client } = connection;
  const keys = makeKeys(partitions);
  const number = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
  return {
    async cost() {
      const [cpu, commands] = await Promise.all([client.info('cpu'), client.info('commandstats')]);
      return {
        cpuSeconds: number(cpu, /^used_cpu_user:([\d.]+)/m) + number(cpu, /^used_cpu_sys:([\d.]+)/m),
        scripts: number(commands, /^cmdstat_evalsha:calls=(\d+)/m),
      };
    },
    async journalLength() {
      const lengths = await Promise.all(
        Array.from({ length: partitions }, (_, partition) => client.xlen(keys.journal(partition))),
      );
      return lengths.reduce((a, b) => a + b, 0);
    },
    close: () => connection.close(),
  };
}

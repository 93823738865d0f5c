/** Finds the partitions with pending work. An idle installation therefore need not poll every partition. */
import type { RedisServers } from './connection.js';
import { unavailable } from './waiting.js';

/**
 * Returns the partitions in which at least one of these keys exists. On a single server, one command first checks
 * whether any of the keys exists. On a cluster, a command can use keys of only one slot. This function then returns all
 * partitions and leaves the check to the caller. Errors: `unavailable`.
 */
export async function partitionsWith(
  servers: RedisServers,
  count: number,
  keysOf: (partition: number) => readonly string[],
): Promise<readonly number[]> {
  const all = Array.from({ length: count }, (_, partition) => partition);
  if (servers.clustered) return all;
  const client = servers.at(0)?.client;
  if (!client) throw unavailable();
  try {
    if ((await client.exists(...all.flatMap(keysOf))) === 0) return [];
    const found = await Promise.all(all.map((partition) => client.exists(...keysOf(partition))));
    return all.filter((_, i) => (found[i] ?? 0) > 0);
  } catch (error) {
    throw unavailable((error as Error).message);
  }
}

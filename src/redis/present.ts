/** Finds out which partitions have something to look at, so that an idle installation is not asked partition by partition. */
import type { RedisServers } from './connection.js';
import { unavailable } from './waiting.js';

/**
 * Partitions in which one of these keys exists. One command finds out that none does where one server carries all
 * partitions. On a cluster a command can name keys of one slot only, so all partitions are returned: the caller looks at each.
 * Errors: `unavailable`.
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

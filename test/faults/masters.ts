/** Finds the current masters of a Redis Cluster after a replica has taken over. */
import type { ClusterNode } from '../support/cluster.js';
import { eventually } from './world.js';

type Rows = ReadonlyArray<
  readonly [start: number, end: number, master: readonly [host: string, port: number]]
>;

export async function slotsSeenBy({ client }: ClusterNode): Promise<Rows> {
  const reply: unknown = await client.cluster('SLOTS');
  return reply as Rows;
}

/** Asks a running node for the master of a slot. Retries while all nodes are reconnecting. */
export async function masterOf(all: readonly ClusterNode[], slot: number): Promise<ClusterNode> {
  let found: ClusterNode | undefined;
  await eventually(`slot ${slot} has a master`, async () => {
    for (const asked of all.filter(({ client }) => client.status === 'ready')) {
      const rows = await slotsSeenBy(asked).catch((): Rows => []);
      const port = rows.find(([start, end]) => slot >= start && slot <= end)?.[2][1];
      found = all.find((node) => node.port === port && node.client.status === 'ready');
      if (found) return true;
    }
    return false;
  });
  return found as ClusterNode;
}

/**
 * Waits until the replica of a master has received everything that the master has written so far. The master must have
 * exactly one replica.
 */
export async function replicated({ client }: ClusterNode): Promise<void> {
  const offsets = async () => {
    const info = await client.info('replication');
    const [, replica, master] = /,offset=(\d+),[\s\S]*master_repl_offset:(\d+)/.exec(info) ?? [];
    return { replica: Number(replica), master: Number(master) };
  };
  const { master } = await offsets();
  await eventually('the replica has caught up', async () => (await offsets()).replica >= master);
}

/**
 * Creates the Redis client of BullMQ, the library behind the wake-up queue. Unlike Petrel's own clients, this client
 * waits while the connection is lost.
 */
import { Cluster, type ClusterNode, type Redis, type RedisOptions } from 'ioredis';
import { systemRandom } from '../random.js';
import { reconnectDelay } from './connection.js';
import { credentials, isCluster, openClient, type RedisTarget } from './target.js';

export type QueueClient = Redis | Cluster;

export function connectQueueClient(
  target: RedisTarget,
  name: string,
  onError: (error: Error) => void,
  random = systemRandom,
) {
  const retryStrategy = (attempt: number) => reconnectDelay(attempt, random.number());
  const shared = {
    connectionName: `petrel-${name}-doorbell`,
    // Retries a command without a limit, as BullMQ requires. BullMQ's workers block in commands that must not time out.
    maxRetriesPerRequest: null,
    retryStrategy,
    disableClientInfo: true,
    lazyConnect: true,
  } satisfies RedisOptions;
  const client: QueueClient = isCluster(target) ? cluster(target, shared) : openClient(target, shared);
  client.on('error', onError);
  return client;
}

function cluster(
  seeds: readonly string[],
  { connectionName, retryStrategy }: Required<Pick<RedisOptions, 'connectionName' | 'retryStrategy'>>,
): Cluster {
  const [model = ''] = seeds;
  const nodes: ClusterNode[] = seeds.map((seed) => ({
    host: new URL(seed).hostname,
    port: Number(new URL(seed).port || 6379),
  }));
  return new Cluster(nodes, {
    clusterRetryStrategy: retryStrategy,
    lazyConnect: true,
    slotsRefreshTimeout: 2_000,
    redisOptions: {
      connectionName,
      maxRetriesPerRequest: null,
      disableClientInfo: true,
      ...credentials(model),
      ...(model.startsWith('rediss:') ? { tls: {} } : {}),
    },
  });
}

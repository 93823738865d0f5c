/** The client that the doorbell's queue library works on: it waits for a lost connection, which calls of ours never do. */
import { Cluster, type ClusterNode, type Redis, type RedisOptions } from 'ioredis';
import { reconnectDelay } from './connection.js';
import { isCluster, openClient, type RedisTarget } from './target.js';

export type QueueClient = Redis | Cluster;

/** Opens a client to one server, to whom Sentinels name, or to a cluster by some of its servers. Nothing is sent before it is used. */
export function connectQueueClient(
  target: RedisTarget,
  name: string,
  onError: (error: Error) => void,
): QueueClient {
  const shared = {
    connectionName: `petrel-${name}-doorbell`,
    // The library asks for it: its workers wait in commands that may not give up.
    maxRetriesPerRequest: null,
    retryStrategy: reconnectDelay,
    disableClientInfo: true,
    lazyConnect: true,
  } satisfies RedisOptions;
  const client: QueueClient = isCluster(target) ? cluster(target, shared) : openClient(target, shared);
  client.on('error', onError);
  return client;
}

function cluster(seeds: readonly string[], { connectionName }: { readonly connectionName: string }): Cluster {
  const [model = ''] = seeds;
  const { username, password, protocol } = new URL(model);
  const nodes: ClusterNode[] = seeds.map((seed) => ({
    host: new URL(seed).hostname,
    port: Number(new URL(seed).port || 6379),
  }));
  return new Cluster(nodes, {
    clusterRetryStrategy: reconnectDelay,
    lazyConnect: true,
    slotsRefreshTimeout: 2_000,
    redisOptions: {
      connectionName,
      maxRetriesPerRequest: null,
      disableClientInfo: true,
      ...(password === '' ? {} : { password }),
      ...(username === '' ? {} : { username }),
      ...(protocol === 'rediss:' ? { tls: {} } : {}),
    },
  });
}

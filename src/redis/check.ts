/**
 * Checks that a Redis server, or every master of a cluster, meets Petrel's requirements. The check runs before Petrel
 * writes anything to the server.
 */
import type { Redis } from 'ioredis';
import { connectionCause } from '../rules/connection_causes.js';
import { redisVersion } from '../rules/versions.js';
import { systemTime, type Time } from '../time.js';
import { viewFrom } from './cluster.js';
import { clusterSlots, shownUrl } from './slots.js';
import {
  isCluster,
  masterName,
  openClient,
  type RedisServer,
  type RedisTarget,
  shownServer,
  type Watched,
} from './target.js';

export interface RedisCheck {
  readonly version: string;
  /** One sentence for each setting that works but is discouraged. */
  readonly warnings: readonly string[];
}

export class RedisCheckError extends Error {
  /** True if Redis did not answer properly. A later attempt may then succeed. */
  readonly away: boolean;

  constructor(message: string, away = false) {
    super(message);
    this.away = away;
  }
}

const noHandshake = 'the TLS handshake timed out: this port may not use TLS';

function field(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}

/**
 * Checks a single server, the master that Sentinels name, or all masters of a cluster. A cluster must serve all slots.
 * Returns the oldest version of the checked servers. Throws a RedisCheckError.
 */
export async function checkRedis(
  target: RedisTarget,
  timeout_ms = 10_000,
  time = systemTime,
): Promise<RedisCheck> {
  if (isCluster(target)) return checkCluster(time, target, timeout_ms);
  const check = await checkServer(time, target, false, timeout_ms);
  if (typeof target === 'string') return check;
  return { ...check, warnings: [...check.warnings, ...(await checkSentinels(time, target, timeout_ms))] };
}

/**
 * Warns if the Sentinels could not elect a new master. An unreachable Sentinel causes only a warning, because the other
 * Sentinels may be enough.
 */
async function checkSentinels(time: Time, watched: Watched, timeout_ms: number): Promise<string[]> {
  const said = await Promise.all(
    watched.sentinels.map((url) =>
      connected(time, url, timeout_ms, (sentinel) =>
        sentinel.call('SENTINEL', 'CKQUORUM', masterName(watched)),
      ).then(
        () => null,
        (error: Error) => `the Sentinel at ${shownUrl(url)} could not replace the master: ${error.message}`,
      ),
    ),
  );
  return said.filter((warning) => warning !== null);
}

async function checkCluster(time: Time, seeds: readonly string[], timeout_ms: number): Promise<RedisCheck> {
  const masters = await Promise.any(seeds.map((seed) => mastersFrom(time, seed, timeout_ms))).catch(
    ({ errors }: AggregateError) => {
      throw errors[0];
    },
  );
  const checks = await Promise.all(masters.map((url) => checkServer(time, url, true, timeout_ms)));
  return {
    version: checks.map(({ version }) => version).sort()[0] as string,
    warnings: [...new Set(checks.flatMap(({ warnings }) => warnings))],
  };
}

/** Loads the list of a cluster's masters. Throws if the cluster does not serve every slot. */
async function mastersFrom(time: Time, seed: string, timeout_ms: number): Promise<string[]> {
  return connected(time, seed, timeout_ms, async (client) => {
    const refuse = (why: string) =>
      new RedisCheckError(`the Redis Cluster of ${shownUrl(seed)} cannot be used: ${why}`, true);
    const view = await viewFrom({ client, url: seed }).catch((error: Error) => {
      throw refuse(error.message);
    });
    const served = view.ranges.reduce((sum, { start, end }) => sum + end - start + 1, 0);
    if (served < clusterSlots) throw refuse(`${clusterSlots - served} slots have no master`);
    return [...new Set(view.ranges.map(({ url }) => url))];
  });
}

/**
 * Checks one server: version, Lua scripts with flags, sharded pub/sub, and a `maxmemory-policy` that evicts nothing.
 * Warns when the append-only file is off. Waits up to `timeout_ms` for the connection and for Redis to load its data.
 * Throws a RedisCheckError.
 */
function checkServer(
  time: Time,
  url: RedisServer,
  inCluster: boolean,
  timeout_ms: number,
): Promise<RedisCheck> {
  return connected(time, url, timeout_ms, (redis) => inspect(redis, url, inCluster));
}

async function connected<T>(
  time: Time,
  url: RedisServer,
  timeout_ms: number,
  work: (redis: Redis) => Promise<T>,
) {
  const redis = openClient(url, {
    lazyConnect: true,
    connectTimeout: timeout_ms,
    commandTimeout: timeout_ms,
    maxRetriesPerRequest: 0,
    retryStrategy: null,
  });
  let lastError: Error | undefined;
  redis.on('error', (error: Error) => {
    lastError = error;
  });
  const late = time.after(timeout_ms, () => redis.disconnect());
  try {
    await redis.connect().catch((error: Error) => {
      // If the server did not answer, reports that its port may not use TLS. A server without TLS waits for more data,
      // because it takes the TLS handshake for an incomplete command.
      const silent = lastError === undefined && typeof url === 'string' && url.startsWith('rediss:');
      const reason = silent ? new Error(noHandshake) : (lastError ?? error);
      throw new RedisCheckError(
        `Redis at ${shownServer(url)} cannot be used: ${connectionCause(reason)}`,
        !/^(WRONGPASS|NOAUTH|NOPERM)/.test(reason.message),
      );
    });
    return await work(redis);
  } finally {
    time.cancel(late);
    redis.disconnect();
  }
}

async function inspect(redis: Redis, url: RedisServer, inCluster: boolean): Promise<RedisCheck> {
  const refuse = (why: string): never => {
    const away = /\((LOADING|CLUSTERDOWN|MASTERDOWN|Connection is closed|Command timed out)/.test(why);
    throw new RedisCheckError(`Redis at ${shownServer(url)} cannot be used: ${why}`, away);
  };
  const attempt = (what: string, reply: Promise<unknown>) =>
    reply.catch((error: Error) => refuse(`${what} (${error.message})`));

  const info = String(await attempt('it does not answer INFO', redis.info()));
  const { version, problem } = redisVersion(info);
  if (problem !== null) refuse(problem);
  const clustered = field(info, 'cluster_enabled') === '1';
  if (clustered && !inCluster)
    refuse('it belongs to a Redis Cluster: set REDIS_CLUSTER instead of REDIS_URL');
  if (!clustered && inCluster)
    refuse('it does not belong to a Redis Cluster: set REDIS_URL instead of REDIS_CLUSTER');
  const policy = field(info, 'maxmemory_policy');
  if (policy !== 'noeviction') {
    refuse(`its maxmemory-policy is ${policy}, which may drop data; set it to noeviction`);
  }
  const flagged = '#!lua flags=allow-oom\nreturn 7';
  if ((await attempt('it does not run Lua scripts', redis.eval(flagged, 0))) !== 7) {
    refuse('it does not run Lua scripts');
  }
  await redis.spublish('petrel:check', '').catch((error: Error) => {
    // Ignores the answer that another server of the cluster owns the channel, because this answer also proves that the
    // server has sharded pub/sub.
    if (!/^(MOVED|CLUSTERDOWN)/.test(error.message)) refuse(`it has no sharded pub/sub (${error.message})`);
  });
  const warnings: string[] = [];
  // Skips the warning if Petrel's user may not read the setting.
  const coverage = inCluster
    ? await redis.config('GET', 'cluster-require-full-coverage').catch(() => [])
    : [];
  if ((coverage as string[])[1] === 'yes') {
    warnings.push('one failed master stops the whole Redis Cluster (set cluster-require-full-coverage no)');
  }
  // Checks `min-replicas-to-write` only under Sentinels. In a cluster, an isolated master stops accepting writes by
  // itself.
  const replicas =
    typeof url === 'string' ? [] : await redis.config('GET', 'min-replicas-to-write').catch(() => []);
  if ((replicas as string[])[1] === '0') {
    warnings.push(
      'a master isolated from its Sentinels keeps accepting writes that will be lost (set min-replicas-to-write 1 on every server)',
    );
  }
  if (field(info, 'aof_enabled') === '0') {
    warnings.push(
      'the append-only file of Redis is off: a crash loses acknowledged writes (set appendonly yes)',
    );
  }
  return { version, warnings };
}

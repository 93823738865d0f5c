/** Tells whether a Redis can carry Petrel before anything is written to it. */
import { Redis } from 'ioredis';

const version_min = 7;

export interface RedisCheck {
  readonly version: string;
  /** What works but is not advised, a sentence each. */
  readonly warnings: readonly string[];
}

/** A Redis that cannot be used; the message says why and what to change. */
export class RedisCheckError extends Error {}

/** The address without its password, for messages. */
function shown(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  return `${protocol}//${hostname}:${port || 6379}`;
}

function field(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}

/**
 * Connects and asks: version 7 or newer, Lua scripts with flags, sharded pub/sub, and a policy that evicts nothing.
 * Warns when the append-only file is off. Waits up to `timeout_ms` for a connection and for data that is being loaded.
 * Throws a RedisCheckError.
 */
export async function checkRedis(url: string, timeout_ms = 10_000): Promise<RedisCheck> {
  const redis = new Redis(url, {
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
  const late = setTimeout(() => redis.disconnect(), timeout_ms);
  try {
    await redis.connect().catch((error: Error) => {
      const reason = lastError ?? error;
      throw new RedisCheckError(`Redis at ${shown(url)} cannot be used: ${reason.message || String(reason)}`);
    });
    return await inspect(redis, url);
  } finally {
    clearTimeout(late);
    redis.disconnect();
  }
}

async function inspect(redis: Redis, url: string): Promise<RedisCheck> {
  const refuse = (why: string): never => {
    throw new RedisCheckError(`Redis at ${shown(url)} cannot be used: ${why}`);
  };
  const attempt = (what: string, reply: Promise<unknown>) =>
    reply.catch((error: Error) => refuse(`${what} (${error.message})`));

  const info = String(await attempt('it does not answer INFO', redis.info()));
  const version = field(info, 'redis_version') ?? '0';
  if (Number.parseInt(version, 10) < version_min)
    refuse(`version ${version} is too old, 7 or newer is needed`);
  const policy = field(info, 'maxmemory_policy');
  if (policy !== 'noeviction') {
    refuse(`its maxmemory-policy is ${policy}, which may drop data; set it to noeviction`);
  }
  const flagged = '#!lua flags=allow-oom\nreturn 7';
  if ((await attempt('it does not run Lua scripts', redis.eval(flagged, 0))) !== 7) {
    refuse('it does not run Lua scripts');
  }
  await redis.spublish('petrel:check', '').catch((error: Error) => {
    // On a cluster the channel may belong to another node, which shows that the command is known.
    if (!/^(MOVED|CLUSTERDOWN)/.test(error.message)) refuse(`it has no sharded pub/sub (${error.message})`);
  });
  const warnings: string[] = [];
  if (field(info, 'aof_enabled') === '0') {
    warnings.push(
      'the append-only file of Redis is off: a crash of it loses acknowledged writes (set appendonly yes)',
    );
  }
  return { version, warnings };
}

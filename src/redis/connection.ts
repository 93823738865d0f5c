/** One connection to Redis with the settings of the hot path, and the run id of the server it reaches. */
import { Redis } from 'ioredis';
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';

export interface RedisConnection {
  readonly client: Redis;
  /** The run id of the server behind the present connection; null while there is none. It is read on each new
   * connection before any script is sent over it, so that a script never speaks to a restarted server unawares. */
  runId(): string | null;
  /** Resolves once a connection is usable, or rejects with `unavailable` after `msMax`. */
  ready(msMax: number): Promise<void>;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly url: string;
  readonly name: string;
  readonly onError?: (error: Error) => void;
}

/** Milliseconds before attempt `n` to connect again: short at first, never above a second, with jitter. */
function reconnectDelay(attempt: number): number {
  return Math.min(1_000, 20 * 2 ** Math.min(attempt, 6)) * (0.75 + Math.random() / 2);
}

export const unavailable = (): ApiError => new ApiError('unavailable', { retry_after: 1 });

/** Opens a connection that refuses at once while it is down: whoever calls decides whether to wait. */
export function connectRedis({ url, name, onError }: ConnectOptions): RedisConnection {
  const client = new Redis(url, {
    connectionName: `petrel-${name}`,
    protocol: 2,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: limits.redis_command_timeout_ms,
    connectTimeout: 2_000,
    keepAlive: 10_000,
    retryStrategy: reconnectDelay,
    disableClientInfo: true,
  });
  let runId: string | null = null;
  let waiting: Array<() => void> = [];
  client.on('error', (error: Error) => onError?.(error));
  client.on('close', () => {
    runId = null;
  });
  client.on('ready', async () => {
    try {
      const info = await client.info('server');
      runId = /^run_id:(\w+)/m.exec(info)?.[1] ?? null;
      const woken = waiting;
      waiting = [];
      for (const wake of woken) wake();
    } catch {
      // The connection went again, and the next one asks anew; one that stays and does not answer is given up.
      if (client.status === 'ready') client.disconnect(true);
    }
  });
  return {
    client,
    runId: () => runId,
    ready(msMax) {
      if (runId !== null) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting = waiting.filter((w) => w !== wake);
          reject(unavailable());
        }, msMax);
        const wake = () => {
          clearTimeout(timer);
          resolve();
        };
        waiting.push(wake);
      });
    },
    async close() {
      client.disconnect();
    },
  };
}

/** One connection to Redis with the settings of the hot path, and the name of the history that it speaks to. */
import { Redis } from 'ioredis';
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';

export interface RedisConnection {
  readonly client: Redis;
  /** Names the history of the server behind the present connection; null while there is none. It is read on each new
   * connection before any script is sent over it, so that a script never speaks to a restarted server unawares. */
  runId(): string | null;
  /** Reads it again: it may have changed while the connection stood. */
  reread(): Promise<void>;
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

/** How often a silent server is looked for. */
const watchMs = 500;

export const unavailable = (): ApiError => new ApiError('unavailable', { retry_after: 1 });

/** Opens a connection that refuses at once while it is down: whoever calls decides whether to wait. */
export function connectRedis({ url, name, onError }: ConnectOptions): RedisConnection {
  const client = new Redis(url, {
    connectionName: `petrel-${name}`,
    protocol: 2,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
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

  /** A server keeps its run id when it is demoted and promoted again, but not its replication id: both together change
   * whenever writes may have been lost. The replication id also changes when a first replica attaches, hence `reread`. */
  async function readId(): Promise<void> {
    try {
      const info = await client.info('server', 'replication');
      const [run] = /(?<=^run_id:)\w+/m.exec(info) ?? [];
      const [replication] = /(?<=^master_replid:)\w+/m.exec(info) ?? [];
      runId = run && replication ? `${run}.${replication}` : null;
    } catch {
      // The connection went again, and the next one asks anew; one that stays and does not answer is given up.
      if (client.status === 'ready') client.disconnect(true);
      return;
    }
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  }

  client.on('ready', readId);

  /**
   * A server that owes answers and sends nothing for the time of a command is given up, and with the connection all that
   * waits on it. One look at intervals does for all commands what a timer for each would cost every one of them.
   */
  let silence = { bytes: 0, since: performance.now() };
  const watch = setInterval(() => {
    const bytes = client.stream?.bytesRead ?? 0;
    const now = performance.now();
    if (client.commandQueue.length === 0 || bytes !== silence.bytes) silence = { bytes, since: now };
    else if (now - silence.since > limits.redis_command_timeout_ms) client.disconnect(true);
  }, watchMs);
  watch.unref();
  return {
    client,
    runId: () => runId,
    reread: readId,
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
      clearInterval(watch);
      client.disconnect();
    },
  };
}

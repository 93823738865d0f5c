/**
 * Monitors the memory use of the Redis servers. A server above `limits.redis_full_percent` of its memory counts as
 * full. The runner then rejects every script without the `allow-oom` flag. The remaining memory is reserved for scripts
 * that delete, revoke, acknowledge or deliver. Calls read a flag in this process, which is refreshed once a second
 * while calls read it.
 */
import { limits } from '../limits.js';
import type { RedisConnection, RedisServers } from './connection.js';

export interface MemoryWatch {
  isFull(server: RedisConnection): boolean;
  /** Whether any server is full. */
  anyFull(): boolean;
  /** Checks every server now. */
  check(): Promise<void>;
  start(): void;
  stop(): void;
}

export interface MemoryWatchOptions {
  readonly connection: Pick<RedisServers, 'nodes'>;
  /** Setting REDIS_MEMORY_MAX: bytes allowed on a server without `maxmemory`; unlimited if absent. */
  readonly bytesMax?: number | undefined;
  /** Called when a server becomes full, and when it stops being full. */
  readonly onChange?: (full: boolean, server: RedisConnection) => void;
}

const numberIn = (info: string, name: string): number =>
  Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);

export function createMemoryWatch({ connection, bytesMax = 0, onChange }: MemoryWatchOptions): MemoryWatch {
  let full: ReadonlySet<RedisConnection> = new Set();
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | undefined;
  /** Some call has read the flag since the last check. */
  let asked = true;

  /** An unreachable server keeps its last known state. */
  async function isFullNow(server: RedisConnection): Promise<boolean> {
    const was = full.has(server);
    if (server.runId() === null) return was;
    try {
      const info = await server.client.info('memory');
      const max = numberIn(info, 'maxmemory') || bytesMax;
      const percent = was ? limits.redis_roomy_percent : limits.redis_full_percent;
      return max > 0 && numberIn(info, 'used_memory') * 100 >= max * percent;
    } catch {
      return was;
    }
  }

  async function checkNow(): Promise<void> {
    const servers = connection.nodes();
    const found = await Promise.all(servers.map(isFullNow));
    const before = full;
    full = new Set(servers.filter((_, i) => found[i]));
    for (const server of servers)
      if (before.has(server) !== full.has(server)) onChange?.(full.has(server), server);
  }

  function check(): Promise<void> {
    checking ??= checkNow().finally(() => {
      checking = undefined;
    });
    return checking;
  }

  return {
    isFull(server) {
      asked = true;
      return full.size > 0 && full.has(server);
    },
    anyFull() {
      asked = true;
      return full.size > 0;
    },
    check,
    start() {
      timer ??= setInterval(() => {
        if (!asked && full.size === 0) return;
        asked = false;
        void check();
      }, limits.redis_memory_look_ms);
      timer.unref();
    },
    stop() {
      clearInterval(timer);
      timer = undefined;
    },
  };
}

/**
 * Monitors how much memory the Redis servers use. A server that uses more than `limits.redis_full_percent` of its
 * memory counts as full. The runner then rejects every script without the `allow-oom` flag. Scripts that delete,
 * revoke, acknowledge or deliver have this flag. Calls only read a variable in this process. The variable is refreshed
 * once a second while calls read it.
 */

import { shared } from '../shared.js';
import { systemTime, type Time, type Timer } from '../time.js';
import type { RedisConnection, RedisServers } from './connection.js';
import { redisLimits as limits } from './limits.js';

export type MemoryWatch = ReturnType<typeof createMemoryWatch>;

export interface MemoryWatchOptions {
  readonly connection: Pick<RedisServers, 'nodes'>;
  /**
   * The setting REDIS_MEMORY_MAX: how many bytes a server without the setting `maxmemory` may use. If REDIS_MEMORY_MAX
   * is absent, such a server has no limit.
   */
  readonly bytesMax?: number | undefined;
  readonly onChange?: (full: boolean, server: RedisConnection) => void;
  readonly time?: Time;
}

const numberIn = (info: string, name: string): number =>
  Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);

export function createMemoryWatch({
  connection,
  bytesMax = 0,
  onChange,
  time = systemTime,
}: MemoryWatchOptions) {
  let full: ReadonlySet<RedisConnection> = new Set();
  let timer: Timer | undefined;
  let asked = true;
  let started = false;

  /** Returns whether a server is full. An unreachable server keeps its last known state. */
  async function isFullNow(server: RedisConnection): Promise<boolean> {
    const was = full.has(server);
    if (!server.reachable()) return was;
    try {
      const info = await server.client.info('memory');
      const max = numberIn(info, 'maxmemory') || bytesMax;
      const percent = was ? limits.redis_roomy_percent : limits.redis_full_percent;
      return max > 0 && numberIn(info, 'used_memory') * 100 >= max * percent;
    } catch {
      return was;
    }
  }

  const check = shared(async () => {
    const servers = connection.nodes();
    const found = await Promise.all(servers.map(isFullNow));
    const before = full;
    full = new Set(servers.filter((_, i) => found[i]));
    for (const server of servers)
      if (before.has(server) !== full.has(server)) onChange?.(full.has(server), server);
  });

  function onTick(): void {
    if (asked || full.size > 0) void check();
    else stopTimer();
    asked = false;
  }

  function stopTimer(): void {
    time.cancel(timer);
    timer = undefined;
  }

  function noteRead(): void {
    asked = true;
    if (!started || timer !== undefined) return;
    timer = time.every(limits.redis_memory_look_ms, onTick).unref();
    void check();
  }

  return {
    isFull(server: RedisConnection): boolean {
      noteRead();
      return full.size > 0 && full.has(server);
    },
    anyFull(): boolean {
      noteRead();
      return full.size > 0;
    },
    check,
    start() {
      started = true;
      noteRead();
    },
    stop() {
      started = false;
      stopTimer();
    },
  };
}

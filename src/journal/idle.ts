/**
 * Waits for work on a connection of its own: Redis answers the moment a journal gets an entry. On a cluster one command can
 * name keys of one slot only, so there the time alone ends the wait.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import type { Keys } from '../store/core/keys.js';

type Client = RedisConnection['client'];

export interface IdleWait {
  /**
   * Resolves when one of these empty journals has an entry, after `msMax`, or when Redis does not answer. True when Redis says
   * that they are still empty. Never rejects.
   */
  forEntry(partitions: readonly number[], msMax: number): Promise<boolean>;
  /** Ends the current wait. Later waits return immediately. */
  close(): void;
}

/** How much later than asked an answer may come before the connection is given up. */
const late_ms = 1_000;

export function createIdleWait(servers: RedisServers, keys: Keys): IdleWait {
  const closing = new AbortController();
  let client: Client | undefined;

  function connect(): Client | undefined {
    const present = servers.at(0)?.client;
    if (client === undefined && present !== undefined) {
      client = present.duplicate({ enableOfflineQueue: true });
      client.on('error', () => undefined);
    }
    return client;
  }

  async function blocked(waiting: Client, partitions: readonly number[], msMax: number): Promise<boolean> {
    const journals = partitions.map((partition) => keys.journal(partition));
    const answered = waiting.xread('BLOCK', msMax, 'STREAMS', ...journals, ...journals.map(() => '0-0'));
    const bound = new AbortController();
    const late = sleep(msMax + late_ms, 'late', { signal: bound.signal }).catch(() => 'answered');
    const outcome = await Promise.race([answered.catch(() => 'failed'), late]);
    bound.abort();
    // A client that is asking Sentinels for the master would end for good.
    if (outcome === 'late' && waiting.status !== 'connecting') waiting.disconnect(true);
    return outcome === null;
  }

  return {
    async forEntry(partitions, msMax) {
      if (closing.signal.aborted) return false;
      const waiting = servers.clustered || partitions.length === 0 ? undefined : connect();
      if (waiting) return blocked(waiting, partitions, msMax);
      await sleep(msMax, undefined, { signal: closing.signal }).catch(() => undefined);
      return false;
    },
    close() {
      closing.abort();
      client?.disconnect();
    },
  };
}

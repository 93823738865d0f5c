/**
 * Waits for work on a dedicated connection: Redis answers as soon as a journal gets an entry. On a cluster one
 * command can name keys of one slot only, so the wait always ends by timeout there.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import type { Keys } from '../store/core/keys.js';

type Client = RedisConnection['client'];

export interface IdleWait {
  /**
   * Resolves when one of these empty journals has an entry, after `msMax`, or when Redis does not answer. Returns
   * true if Redis says that they are still empty. Never rejects.
   */
  forEntry(partitions: readonly number[], msMax: number): Promise<boolean>;
  /** Ends the current wait. Later waits return immediately. */
  close(): void;
}

/** How many ms after its deadline an answer may arrive before the connection is closed. */
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
    // A client that is asking Sentinels for the master would never connect again.
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

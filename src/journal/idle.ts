/**
 * Waits on a separate connection until a journal gets an entry. Redis answers as soon as this happens. On a cluster,
 * the wait always ends by timeout, because all keys of a command must be in one slot.
 */
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import type { Keys } from '../store/core/keys.js';
import type { Time } from '../time.js';

type Client = RedisConnection['client'];

/** If an answer is later than its deadline by more than this, the connection is closed. */
const late_ms = 1_000;

/** Creates the wait. On a cluster, it uses `sleep`, which may end early. */
export function createIdleWait(
  servers: RedisServers,
  keys: Keys,
  time: Time,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
) {
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
    const outcome = await time.within(
      msMax + late_ms,
      answered.catch(() => 'failed' as const),
    );
    // Keeps a client that is still asking Sentinels for the master, because it would never connect again if it were
    // disconnected now.
    if (outcome === undefined && waiting.status !== 'connecting') waiting.disconnect(true);
    return outcome === null;
  }

  return {
    /**
     * Waits until one of these empty journals gets an entry, for at most `msMax`. Also resolves if Redis does not
     * answer. Returns true if Redis reports that the journals are still empty. Never rejects.
     */
    async forEntry(partitions: readonly number[], msMax: number): Promise<boolean> {
      if (closing.signal.aborted) return false;
      const waiting = servers.clustered || partitions.length === 0 ? undefined : connect();
      if (waiting) return blocked(waiting, partitions, msMax);
      await sleep(msMax, closing.signal);
      return false;
    },
    close() {
      closing.abort();
      client?.disconnect();
    },
  };
}

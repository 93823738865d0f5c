/**
 * Waits on a separate connection until a journal gets an entry. Redis answers as soon as this happens. On a cluster,
 * the wait always ends by timeout, because all keys of a command must be in one slot.
 */
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import type { Keys } from '../store/core/keys.js';
import type { Time } from '../time.js';

type Client = RedisConnection['client'];

/**
 * How long to wait for the answer of Redis after the time limit of a wait has passed, in ms. Then the connection is
 * closed.
 */
const late_ms = 1_000;

/**
 * Creates the function that waits for the next journal entry. On a cluster, this function uses `sleep`, which may end
 * early.
 */
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
    // Does not disconnect a client that is still asking the Sentinels for the Redis master. Such a client would never
    // connect again.
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

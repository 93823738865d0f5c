/** Reads the clock of Redis. */
import type { RedisConnection } from '../redis/connection.js';

/** Reads the time of Redis in ms, because the clocks of nodes may differ. */
export async function clockOf(client: RedisConnection['client']): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

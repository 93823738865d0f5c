import { makeKeys } from '../../src/store/core/keys.js';
import { openAnywhere } from './cluster.js';
import type { Service } from './service.js';

/** Makes the pending updates of a bot a day old. Such updates are too old for a delivery. */
export async function ageQueue(service: Pick<Service, 'redis' | 'env'>, bot: number): Promise<void> {
  const redis = openAnywhere(service.redis);
  const queue = makeKeys(Number(service.env.PARTITIONS ?? 64)).queue(bot);
  const rows = await redis.xrangeBuffer(queue, '-', '+');
  // Keeps the last id of the stream, so that the queue continues after this id.
  const last = Number(String(rows.at(-1)?.[0]).split('-')[0]);
  await redis.del(queue);
  for (const [i, [, fields]] of rows.entries()) {
    fields[3] = Buffer.from(String(Date.now() - 25 * 3_600_000));
    await redis.xadd(queue, `${last - rows.length + 1 + i}-0`, ...fields);
  }
  redis.disconnect();
}

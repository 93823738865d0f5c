/** Counts for 20 s how often processes read the state of Redis. `metrics.test.ts` tests what a scrape reads. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { openMasters } from '../support/cluster.js';
import { type MeteredRoles, onMeteredRoles } from './metrics_world.js';

let roles: MeteredRoles;
onMeteredRoles((started) => {
  roles = started;
});

// On a Redis Cluster, each process also reads the run id of each master once a second.
test.skipIf(process.env.PETREL_TEST_REDIS === 'cluster')(
  'processes read the state of Redis only for scrapes',
  async () => {
    const [redis] = openMasters(roles.service.redis) as [Redis];
    const infos = async () => {
      const stats = await redis.info('commandstats');
      return Number(/^cmdstat_info:calls=(\d+)/m.exec(stats)?.[1]);
    };
    const before = await infos();
    await sleep(20_000);
    // This test causes one read, and background checks of the memory cause a few. Three processes that read every 5 s
    // would cause twelve more.
    expect(await infos()).toBeLessThanOrEqual(before + 1 + 8);
    redis.disconnect();
  },
);

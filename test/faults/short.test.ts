/** The short form of the fault tests in the `*.long.test.ts` files: kills each process once under load. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { nothingWrong } from '../support/ledger.js';
import { type Service, startService } from '../support/service.js';
import { durableRedis, ownPostgres } from './backends.js';
import { compareStores, drained } from './compare.js';
import { createWorld, eventually } from './world.js';

let service: Service | undefined;
afterEach(() => service?.stop());

test('no message is lost or duplicated when the roles, Redis and Postgres are killed in turn under load', async () => {
  const [redis, postgres] = await Promise.all([durableRedis(), ownPostgres()]);
  const database = { url: postgres.url, drop: () => postgres.stop() };
  service = await startService({ fronts: 2, redis, database, extraEnv: { PARTITIONS: '8' } });
  const world = await createWorld(service);
  world.poll((round) => round % 2);
  const ended = new AbortController();
  const refusals = new Set<number>();
  const loading = world.load({
    count: Number.POSITIVE_INFINITY,
    restMs: 20,
    signal: ended.signal,
    front: (lane, tries) => (lane + tries) % 2,
    onRefusal: (status) => refusals.add(status),
  });
  for (const victim of [service.fronts[0], service.deliver, service.flush, postgres, redis]) {
    const acknowledged = world.ledger.acknowledged.length;
    await eventually('50 calls acknowledged', () => world.ledger.acknowledged.length > acknowledged + 50);
    await victim.kill();
    await sleep(200);
    await victim.start();
  }
  const acknowledged = world.ledger.acknowledged.length;
  await eventually('50 calls acknowledged', () => world.ledger.acknowledged.length > acknowledged + 50);
  ended.abort();
  await loading;
  expect(await world.settled()).toMatchObject(nothingWrong);
  await drained(service);
  expect((await compareStores(service)).differences).toEqual([]);
  // Status 0 is allowed, because it means that a connection broke when its front was killed.
  expect([...refusals].filter((status) => status !== 0 && status !== 503)).toEqual([]);
}, 300_000);

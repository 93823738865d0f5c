/**
 * Kills a worker and Redis while each bot has three webhook routes. No update is lost, each update goes to its route,
 * and each chat stays in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nothingWrong } from '../support/ledger.js';
import { createRole, type RoleProcess } from '../support/role_process.js';
import { type Service, startService } from '../support/service.js';
import { durableRedis } from './backends.js';
import { amount, nothingLost, patienceMs, report } from './report.js';
import { routeAll } from './routed.js';
import { createWorld, eventually } from './world.js';

let service: Service;
let redis: Awaited<ReturnType<typeof durableRedis>>;
let workers: readonly [RoleProcess, RoleProcess];

beforeAll(async () => {
  redis = await durableRedis();
  const extraEnv = { PARTITIONS: '16', WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' };
  service = await startService({ fronts: 2, redis, extraEnv });
  workers = [service.deliver, createRole('deliver', async () => service.env)];
  await workers[1].start();
});
afterAll(async () => {
  await workers?.[1].stop();
  await service?.stop();
});

test(
  'killing workers and Redis under load loses no update of three routes and keeps the order of each chat',
  async ({ onTestFinished }) => {
    const world = await createWorld(service);
    const { astray, taken, open, hold, close } = await routeAll(world, 20);
    onTestFinished(() => void close());
    const ended = new AbortController();
    const loading = world.load({
      ...{ count: Number.POSITIVE_INFINITY, restMs: 100, signal: ended.signal },
      front: (lane, tries) => (lane + tries) % 2,
    });
    const more = async (count: number) => {
      const before = world.ledger.acknowledged.length;
      await eventually(
        `${count} calls acknowledged`,
        () => world.ledger.acknowledged.length - before > count,
        40_000,
      );
    };
    const rounds = amount(2, 20);
    for (let round = 0; round < rounds; round++) {
      await more(50);
      const worker = workers[round % 2] as RoleProcess;
      const release = hold();
      await eventually('requests are open', () => open() > 0);
      await worker.kill();
      release();
      await worker.start();
      await more(50);
      await redis.kill();
      await sleep(200);
      await redis.start();
    }
    await more(50);
    const least = () => Math.min(...Object.values(taken));
    await eventually('each route has taken updates', () => least() > 20, 60_000);
    ended.abort();
    await loading;
    const verdict = await world.settled(60_000);
    report('', 'workers and Redis killed, three routes', { rounds, taken, ...verdict }, [
      nothingLost(verdict),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(verdict.acknowledged).toBeGreaterThan(200);
    expect(astray).toEqual([]);
  },
  patienceMs,
);

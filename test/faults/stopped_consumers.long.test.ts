/**
 * Kills Redis, a front and the clients of one bot, which are pollers or streams. Also stops a front and pollers for
 * longer than their leases. No update is lost, and each chat stays in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { startPatiently } from '../support/role_process.js';
import { type Service, startService } from '../support/service.js';
import { durableRedis } from './backends.js';
import { type Amounts, type Faults, share } from './consumers.js';
import { amount, atMost, patienceMs, report } from './report.js';

let service: Service | undefined;
afterEach(async () => {
  await service?.stop();
  service = undefined;
});

/** How long pollers are stopped. This is longer than the lease of a consumer, which lasts 4 s. */
const stopMs = 6_000;

test.each<[of: string, Partial<Amounts>]>([
  ['pollers', {}],
  ['streams', { streams: 'all' }],
  ['one stream', { pollers: 1, streams: 'alone' }],
])(
  'killing Redis, and killing and stopping fronts and clients, loses no update of %s and keeps the order of each chat',
  async (of, more) => {
    const redis = await durableRedis();
    const running = await startService({ combined: true, fronts: 2, redis });
    service = running;
    const [, front] = running.fronts;
    const rounds = amount(1, 20);
    const faults = async ({ processed, stopPollers }: Faults) => {
      for (let round = 0; round < rounds; round++) {
        await processed(50);
        await redis.kill();
        await sleep(200);
        await redis.start();
        await processed(50);
        await front?.kill();
        if (front) await startPatiently(front);
        await processed(50);
        front?.pause();
        await sleep(stopMs);
        front?.resume();
        await processed(50);
        await stopPollers(stopMs);
      }
    };
    const amounts = { pollers: 4, kills: 4, updates: 400, gapMs: 0, faults, ...more };
    const verdict = await share(running, amounts, 60_000);
    report('', `Redis, fronts and ${of} of one bot killed and stopped`, { rounds, ...verdict }, [
      atMost('lost or overtaken in their chat', verdict.lost + verdict.early, 0),
    ]);
    expect(verdict).toMatchObject({ lost: 0, early: 0, pollers: amounts.pollers });
    expect(verdict.updates).toBeGreaterThanOrEqual(amounts.updates);
  },
  patienceMs,
);

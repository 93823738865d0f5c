/** Tests restarts of a killed Redis, and lost replies from Redis. No data is lost and no call is applied twice. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { nothingWrong } from '../support/ledger.js';
import { type Service, startService } from '../support/service.js';
import { durableRedis, type LosingProxy, losingProxy } from './backends.js';
import { compareStores, drained } from './compare.js';
import { amount, atMost, nothingLost, patienceMs, report } from './report.js';
import { createWorld, eventually } from './world.js';

let service: Service | undefined;
let proxy: LosingProxy | undefined;
afterEach(async () => {
  await service?.stop();
  await proxy?.close();
  service = undefined;
  proxy = undefined;
});

/** How long calls may fail after Redis has loaded its data. */
const resume_ms_max = 5_000;

test(
  'R4: if Redis is killed under load, no acknowledged message is lost and no id is given out twice',
  async () => {
    const redis = await durableRedis();
    service = await startService({ fronts: 2, redis, extraEnv: { PARTITIONS: '16' } });
    const world = await createWorld(service);
    world.poll((round) => round % 2);
    const ended = new AbortController();
    let lastSuccess = 0;
    const refusals: Record<string, number> = {};
    const loading = world.load({
      count: Number.POSITIVE_INFINITY,
      front: (lane, tries) => (lane + tries) % 2,
      signal: ended.signal,
      onAcknowledged: () => {
        lastSuccess = performance.now();
      },
      onRefusal: (status) => {
        refusals[status] = (refusals[status] ?? 0) + 1;
      },
    });
    const kills = amount(3, 20);
    const resumedMs: number[] = [];
    for (let kill = 0; kill < kills; kill++) {
      const before = world.ledger.acknowledged.length;
      await eventually(
        '100 calls acknowledged',
        () => world.ledger.acknowledged.length - before > 100,
        40_000,
      );
      await sleep(Math.random() * 400);
      await redis.kill();
      await sleep(Math.random() * 1_000);
      await redis.start();
      const loaded = performance.now();
      while (lastSuccess < loaded && performance.now() - loaded < 3 * resume_ms_max) await sleep(5);
      resumedMs.push(Math.round(performance.now() - loaded));
    }
    await sleep(600);
    ended.abort();
    await loading;
    const verdict = await world.settled();
    await drained(service);
    const rows = await compareStores(service);
    report('R4', 'Redis killed and started again under load', { resumedMs, refusals, ...verdict, ...rows }, [
      nothingLost(verdict),
      atMost('differences between Redis and Postgres', rows.differences.length, 0),
      atMost('longest time to serve after it has loaded, ms', Math.max(...resumedMs), resume_ms_max),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(rows.differences).toEqual([]);
    expect(verdict.acknowledged).toBeGreaterThan(300);
    for (const ms of resumedMs) expect(ms).toBeLessThan(resume_ms_max);
    expect(Object.keys(refusals).filter((status) => status !== '503')).toEqual([]);
  },
  patienceMs,
);

test(
  'R5: even if connections are cut before the reply, each acknowledged call stores exactly one message',
  async () => {
    const redis = await durableRedis();
    const made = await losingProxy(redis.url);
    proxy = made;
    service = await startService({
      fronts: 1,
      redis,
      extraEnv: { PARTITIONS: '16' },
      frontEnv: { REDIS_URL: made.url },
    });
    const world = await createWorld(service);
    world.poll(() => 0);
    made.chance = 0.1;
    const count = amount(1_000, 10_000);
    const refusals: Record<string, number> = {};
    let silenceMs = 0;
    let lastAnswer = performance.now();
    const answered = () => {
      silenceMs = Math.max(silenceMs, Math.round(performance.now() - lastAnswer));
      lastAnswer = performance.now();
    };
    const ended = new AbortController();
    const cutsMin = count / 200;
    // The load ends only after the proxy has cut enough connections. How many commands a cut affects depends on the
    // speed of the machine.
    await world.load({
      count: Number.POSITIVE_INFINITY,
      signal: ended.signal,
      front: () => 0,
      onAcknowledged: (total) => {
        answered();
        if (total >= count && made.cuts > cutsMin) ended.abort();
      },
      onRefusal: (status) => {
        refusals[status] = (refusals[status] ?? 0) + 1;
        answered();
      },
    });
    made.chance = 0;
    const verdict = await world.settled();
    report('R5', 'connections cut before the answer', { cuts: made.cuts, silenceMs, refusals, ...verdict }, [
      nothingLost(verdict),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(verdict.acknowledged).toBeGreaterThanOrEqual(count);
    // A lost reply must not block a front for much longer than a new connection takes, which is about 50 ms.
    expect(silenceMs).toBeLessThan(2_500);
  },
  patienceMs,
);

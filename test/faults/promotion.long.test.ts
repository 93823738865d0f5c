/**
 * Tests high availability of Postgres. DATABASE_URL names two servers, and a synchronous standby takes over under load.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { petrel } from '../support/command.js';
import { nothingWrong } from '../support/ledger.js';
import { patroniRuns, startPatroni } from '../support/patroni.js';
import { type Address, ask, atPort, openAddress, startPair } from '../support/postgres_pair.js';
import { type Service, startService, type TestBot } from '../support/service.js';
import { compareStores, drained } from './compare.js';
import { atMost, nothingLost, patienceMs, report } from './report.js';
import { createWorld, eventually, type World } from './world.js';

interface Cluster {
  readonly both: string;
  readonly firstPort: number;
  /** Kills the first server, and waits until the second server is the primary. */
  failOver(): Promise<number>;
  close(): Promise<void>;
}

async function promoted(): Promise<Cluster> {
  const pair = await startPair({ durable: true });
  await pair.addStandby();
  await ask(pair.primaryUrl, "alter system set synchronous_standby_names = 'standby'");
  await ask(pair.primaryUrl, 'select pg_reload_conf()');
  return {
    both: pair.primaryUrl.replace(/@[^/]+/, (host) => `${host},127.0.0.1:${pair.standbyPort}`),
    firstPort: pair.primaryPort,
    async failOver() {
      await pair.killPrimary();
      await pair.promote();
      return pair.standbyPort;
    },
    close: pair.close,
  };
}

async function patroni(): Promise<Cluster> {
  const cluster = await startPatroni();
  const { port } = (await cluster.primary()) as { port: number };
  return {
    both: cluster.both,
    firstPort: port,
    async failOver() {
      await cluster.killPrimary();
      let next: number | undefined;
      await eventually(
        'Patroni promotes the standby',
        async () => {
          next = (await cluster.primary())?.port;
          return next !== undefined && next !== port;
        },
        60_000,
      );
      return next as number;
    },
    close: cluster.stop,
  };
}

let address: Address;
let service: Service;
let world: World;

afterEach(async () => {
  await world?.stop();
  await service?.stop();
});

async function failOverUnderLoad(what: string, cluster: Cluster): Promise<void> {
  const { both, firstPort } = cluster;
  // The address through which the test itself queries the database.
  address = await openAddress();
  address.point(firstPort);
  const drop = async () => {
    await address.close();
    await cluster.close();
  };
  const url = atPort(both.replace(/,[^/]+/, ''), address.port);
  service = await startService({
    fronts: 2,
    database: { url, drop },
    extraEnv: { PARTITIONS: '16', DATABASE_URL: both },
  });
  const owner = await service.newUser('owner');
  const revoked: string[] = [];
  const made: TestBot[] = [];
  world = await createWorld(service);
  world.poll((round) => round % 2);
  const ended = new AbortController();
  const refusals: unknown[] = [];
  const loading = world.load({
    count: Number.POSITIVE_INFINITY,
    front: (lane, tries) => (lane + tries) % 2,
    restMs: 5,
    signal: ended.signal,
    onRefusal: (status, body) => refusals.push([status, body]),
  });
  const controlling = (async () => {
    while (!ended.signal.aborted) {
      const bot = await service.newBot(owner, 'control').catch(() => null);
      if (bot === null) {
        await sleep(20);
        continue;
      }
      made.push(bot);
      const renewal = await service
        .app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`, {})
        .catch(() => null);
      if (renewal?.status !== 200) continue;
      revoked.push(bot.token);
      made[made.length - 1] = { ...bot, token: renewal.body.result.token };
      if (made.length === 60) return;
    }
  })();
  await world.warmedUp();
  await eventually('control operations succeed', () => revoked.length > 5, 60_000);
  const began = performance.now();
  const second = await cluster.failOver();
  const promotedMs = Math.round(performance.now() - began);
  address.point(second);
  const before = revoked.length;
  await eventually('control operations succeed again', () => revoked.length > before + 1, 30_000);
  const awayMs = Math.round(performance.now() - began);
  await sleep(1_000);
  ended.abort();
  await Promise.all([loading, controlling]);

  const rows = await ask<{ id: string }>(url, 'select id from bots');
  const kept = new Set(rows.map(({ id }) => Number(id)));
  const lost = made.filter(({ id }) => !kept.has(id)).map(({ id }) => id);
  const alive: string[] = [];
  for (const token of revoked) {
    let status = 503;
    await eventually('a call with a revoked token is answered', async () => {
      status = (await service.bot(token, 'getMe', {}, 1)).status;
      return status !== 503;
    });
    if (status !== 401) alive.push(token.slice(0, 4));
  }
  const verdict = await world.settled();
  await drained(service);
  const { differences } = await compareStores(service);
  const { out } = await petrel(service.env, 'doctor');
  report('R20', what, { promotedMs, awayMs, made: made.length, revoked: revoked.length, ...verdict }, [
    nothingLost(verdict),
    atMost('acknowledged control operations that were lost', lost.length, 0),
    atMost('revoked tokens that work', alive.length, 0),
    atMost('calls on hot data that failed', refusals.length, 0),
  ]);
  expect({ lost, alive, refusals, differences }).toEqual({
    lost: [],
    alive: [],
    refusals: [],
    differences: [],
  });
  expect(verdict).toMatchObject(nothingWrong);
  expect(out).not.toMatch(/committed transactions/);
}

test(
  'promoting a synchronous standby under load loses no acknowledged message',
  async () => failOverUnderLoad('a synchronous standby is promoted under load', await promoted()),
  patienceMs,
);

test.runIf(patroniRuns)(
  'if Patroni replaces a primary that was killed under load, no acknowledged message is lost',
  async () => failOverUnderLoad('Patroni replaces a primary that was killed', await patroni()),
  2 * patienceMs,
);

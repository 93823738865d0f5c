/** Tests the recorded calls of concurrent clients while fronts and Redis are killed or frozen, and when replies are late. */
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { History, type Operation } from '../support/histories/history.js';
import { checkLinearizable } from '../support/histories/linearizable.js';
import { replacementSteps, type TokenInput, tokens } from '../support/histories/models.js';
import { createFront, type Front, startPatiently } from '../support/role_process.js';
import { resultOf, type Service, startService } from '../support/service.js';
import { durableRedis, type HoldingProxy, holdingProxy, type Restartable } from './backends.js';
import { playRound } from './clients.js';
import { amount, atMost, patienceMs, report } from './report.js';

/** Each round creates its objects again, which takes seconds on a busy machine. */
const limitMs = Math.max(patienceMs, 300_000);

const undo: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

interface Faulty {
  readonly service: Service;
  readonly redis: Restartable;
}

interface Disturbance {
  readonly what: string;
  readonly restarts: number;
  run(at: Faulty): Promise<void>;
}

const disturbances: readonly Disturbance[] = [
  {
    what: 'a front is killed',
    restarts: 0,
    async run({ service: { fronts } }) {
      await fronts[0].kill();
      await sleep(500);
      await startPatiently(fronts[0]);
    },
  },
  {
    what: 'a front is frozen for longer than its lease',
    restarts: 0,
    async run({ service: { fronts } }) {
      const front = fronts[1] as Front;
      front.pause();
      await sleep(limits.auth_lease_ms + 2 * limits.auth_lease_margin_ms);
      front.resume();
    },
  },
  {
    what: 'Redis is killed',
    restarts: 1,
    async run({ redis }) {
      await redis.kill();
      await sleep(500);
      await redis.start();
    },
  },
  {
    what: 'Redis is frozen',
    restarts: 0,
    async run({ redis }) {
      redis.pause();
      await sleep(1_200);
      redis.resume();
    },
  },
];

test(
  'R26: calls stay linearizable while fronts and Redis are killed or frozen',
  async () => {
    const redis = await durableRedis();
    const service = await startService({
      fronts: 2,
      redis,
      extraEnv: { PARTITIONS: '16', GUESSES_BURST: '0' },
    });
    undo.push(() => service.stop());
    for (let round = 0; round < amount(1, 50); round++)
      for (const [index, { what, restarts, run }] of disturbances.entries()) {
        const disturb = async () => {
          await sleep(1_000);
          await run({ service, redis });
          await sleep(1_000);
        };
        const seed = 100 * round + index;
        const began = performance.now();
        const found = await playRound(service, { seed, answered: 100, disturb, restarts });
        const failed = found.verdicts.filter(({ result }) => result !== 'linearizable');
        const { verdicts, updates, arrivals } = found;
        const figures = verdicts.map(({ key, operations, unknown, steps }) => ({
          key,
          operations,
          unknown,
          steps,
        }));
        report('R26', `recorded histories, ${what}`, { arrivals, ms: performance.now() - began, figures }, [
          atMost('violations', failed.length + updates.length, 0),
        ]);
        expect(failed, what).toEqual([]);
        expect(updates, what).toEqual([]);
      }
  },
  limitMs,
);

interface Late {
  readonly service: Service;
  /** A front whose replies of Redis a test can delay. */
  readonly front: Front;
  readonly proxy: HoldingProxy;
}

async function startLate(): Promise<Late> {
  const service = await startService({
    fronts: 2,
    extraEnv: { PARTITIONS: '16', GUESSES_BURST: '0' },
  });
  undo.push(() => service.stop());
  const proxy = await holdingProxy(service.redis.url);
  undo.push(() => proxy.close());
  const front = await createFront(service.env, { REDIS_URL: proxy.url });
  undo.push(() => front.stop());
  await front.start();
  // Before this time, a front that replaces a token waits for a whole lease.
  await sleep(limits.auth_lease_ms + limits.auth_lease_margin_ms);
  return { service, front, proxy };
}

/**
 * Replaces a token while the reply to a renewal of a front’s lease is on its way. Uses the old token at that front once
 * the reply has arrived.
 */
async function replaceDuringRenewal({ service, front, proxy }: Late) {
  const history = new History();
  const owner = await service.newUser('late');
  const bot = await service.newBot(owner, 'late');
  const key = 'tokens of a bot';
  const use = () =>
    history.record({ client: 'bot', key, input: { what: 'use', token: 't0' }, reads: true }, async () => {
      const answer = await request(`${front.url}/bot${bot.token}/getMe`).catch(() => null);
      await answer?.body.dump();
      return answer && answer.statusCode < 500 ? answer.statusCode === 200 : null;
    });
  await expect.poll(use).toBe(true);
  await proxy.holdAfter('auth_nodes', 'auth_revoked');
  const path = `/api/me/bots/${bot.id}/regenerate_token`;
  const began = performance.now();
  await history.record({ client: 'owner', key, input: { what: 'begin', token: 't1' } }, async () => {
    await resultOf(service.app(owner, 'POST', path));
    return true;
  });
  const tookMs = performance.now() - began;
  proxy.release();
  // Until the next renewal, the front does not learn of the replacement.
  for (const until = performance.now() + limits.auth_lease_renew_ms; performance.now() < until; ) {
    await use();
    await sleep(2);
  }
  const recorded = history.operations as Operation<TokenInput, boolean>[];
  const steps = recorded.flatMap((each) =>
    each.input.what === 'use' ? [each] : replacementSteps(each, 't1'),
  );
  const [verdict] = checkLinearizable(tokens('t0'), steps);
  return { tookMs, result: verdict?.result, explanation: verdict?.explanation };
}

test(
  'a late reply to the renewal of a lease does not prolong the old token',
  async () => {
    const late = await startLate();
    for (let round = 0; round < 3; round++) {
      const { tookMs, ...verdict } = await replaceDuringRenewal(late);
      expect(verdict).toEqual({ result: 'linearizable', explanation: '' });
      // The call waited for the lease of the front.
      expect(tookMs).toBeGreaterThan(limits.auth_lease_ms);
    }
  },
  limitMs,
);

/**
 * Checks the recorded calls of concurrent clients while fronts, Redis and connections fail. Also plants defects in the
 * built program, and tests that the checker finds them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { afterEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { History, type Operation } from '../support/histories/history.js';
import { checkLinearizable } from '../support/histories/linearizable.js';
import { replacementSteps, type TokenInput, tokens } from '../support/histories/models.js';
import { createFront, type Front, startPatiently } from '../support/role_process.js';
import { resultOf, type Service, startService } from '../support/service.js';
import {
  durableRedis,
  type HoldingProxy,
  holdingProxy,
  type LosingProxy,
  losingProxy,
  type Restartable,
} from './backends.js';
import { playRound } from './clients.js';
import { amount, atMost, patienceMs, report } from './report.js';

/**
 * The time limit of a test. It is high, because creating the objects of a round takes seconds on a busy machine.
 */
const limitMs = Math.max(patienceMs, 300_000);

const undo: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

interface Faulty {
  readonly service: Service;
  readonly redis: Restartable;
  readonly proxy: LosingProxy;
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
  {
    what: 'replies of Redis are lost',
    restarts: 0,
    async run({ proxy }) {
      proxy.chance = 0.05;
      await sleep(4_000);
      proxy.chance = 0;
    },
  },
  {
    what: 'the other roles are killed',
    restarts: 0,
    async run({ service: { deliver, flush } }) {
      for (const role of [deliver, flush]) {
        await role.kill();
        await startPatiently(role);
      }
    },
  },
];

test(
  'R26: calls stay linearizable while fronts, Redis and connections fail',
  async () => {
    const redis = await durableRedis();
    const proxy = await losingProxy(redis.url);
    undo.push(() => proxy.close());
    const service = await startService({
      fronts: 2,
      redis,
      extraEnv: { PARTITIONS: '16', GUESSES_BURST: '0' },
      frontEnv: { REDIS_URL: proxy.url },
    });
    undo.push(() => service.stop());
    for (let round = 0; round < amount(1, 50); round++)
      for (const [index, { what, restarts, run }] of disturbances.entries()) {
        const disturb = async () => {
          await sleep(1_000);
          await run({ service, redis, proxy });
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
  /** A front that reaches Redis through a proxy, so that a test can delay the replies of Redis. */
  readonly front: Front;
  readonly proxy: HoldingProxy;
}

async function startLate(extraEnv: Record<string, string>): Promise<Late> {
  const service = await startService({
    fronts: 2,
    extraEnv: { PARTITIONS: '16', GUESSES_BURST: '0', ...extraEnv },
  });
  undo.push(() => service.stop());
  const proxy = await holdingProxy(service.redis.url);
  undo.push(() => proxy.close());
  const front = await createFront(service.env, { REDIS_URL: proxy.url });
  undo.push(() => front.stop());
  await front.start();
  // Waits for the time of one lease. If a token were replaced earlier, the call would take a whole lease, because some
  // nodes may not be listed yet.
  await sleep(limits.auth_lease_ms + limits.auth_lease_margin_ms);
  return { service, front, proxy };
}

/**
 * Replaces a token while the reply to a front’s lease renewal is held back. Uses the old token at that front after the
 * reply has arrived.
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
  'a late reply to a lease renewal does not extend the time for which a front accepts the old token',
  async () => {
    const late = await startLate({});
    for (let round = 0; round < 3; round++) {
      const { tookMs, ...verdict } = await replaceDuringRenewal(late);
      expect(verdict).toEqual({ result: 'linearizable', explanation: '' });
      // Shows that the call waited for the lease of the front.
      expect(tookMs).toBeGreaterThan(limits.auth_lease_ms);
    }
  },
  limitMs,
);

/**
 * The planted defects, keyed by the kind of object whose history shows the defect. The file `dist/main` stands for all
 * files of the built program.
 */
const mutations: ReadonlyArray<readonly [object: string, file: string, from: RegExp, to: string]> = [
  ['tokens of a bot', 'dist/main', /leaseUntil = sent \+/, 'leaseUntil = performance.now() +'],
  ['owner of a bot', 'dist/main', /await lockOwned\(sql, \w+, from\);/, ''],
  ['pin of a group chat', 'lua/messages/unpin.lua', /message_id ~= c\.pin/, 'false'],
  ['reactions to a post', 'lua/posts/react.lua', /what == 'erase' or each == emoji/, 'true'],
  ['edits of a message', 'lua/lib/edit.lua', /< LIMITS\.edit_interval_ms_min/, '< 300'],
  ['updates', 'lua/updates/poll.lua', /\('\(%\.0f-0'\):format\(n\)/, "('(%.0f-0'):format(n + 1)"],
];
/**
 * Raises the time for which a front waits for Redis, so that a front does not give up while a slow machine delays a
 * reply.
 */
const patience = ['dist/main', 'redis_silence_ms: 1500', 'redis_silence_ms: 10000'] as const;

const preload = fileURLToPath(new URL('../support/histories/mutation.mjs', import.meta.url));

test(
  'for each kind of object, the linearizability check finds a planted defect',
  async () => {
    const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
    const parts = readdirSync(dist).filter((name) => /^main.*\.js$/.test(name));
    const inProgram = [patience, ...mutations.map(([, file, { source }]) => [file, source] as const)]
      .filter(([file]) => file === 'dist/main')
      .map(([, from]) => new RegExp(from));
    for (const from of inProgram)
      expect(parts.filter((name) => from.test(readFileSync(join(dist, name), 'utf8')))).toHaveLength(1);
    const late = await startLate({
      NODE_OPTIONS: `--import=${preload}`,
      MUTATIONS: JSON.stringify([
        patience,
        ...mutations.map(([, file, { source }, to]) => [file, source, to]),
      ]),
    });
    // Groups and direct chats use the same unpin script. The planted defect in this script must therefore be found in
    // both kinds of chats.
    const keys = [...mutations.map(([key]) => key), 'pin of a direct chat'];
    const found = new Set<string>();
    const roundsMax = 8;
    for (let round = 0; round < roundsMax && !found.has('tokens of a bot'); round++)
      if ((await replaceDuringRenewal(late)).result === 'violation') found.add('tokens of a bot');
    for (let round = 0; round < roundsMax && found.size < keys.length; round++) {
      const { verdicts, updates } = await playRound(late.service, {
        seed: round,
        answered: 100,
        arrivalMsMax: 2_000,
      });
      for (const { key, result } of verdicts) if (result === 'violation') found.add(key);
      if (updates.length > 0) found.add('updates');
    }
    expect([...found].sort()).toEqual(keys.sort());
  },
  limitMs,
);

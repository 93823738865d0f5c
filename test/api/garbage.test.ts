/**
 * Garbage for every method and every endpoint, in every form: each answer is an envelope and no fault, what is refused
 * changes nothing, and whatever comes of it stays with those who have a part in it (behaviour §1).
 */
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../clients/event_source.js';
import { openMasters } from '../support/cluster.js';
import { providerSettings } from '../support/provider.js';
import { type Service, startService } from '../support/service.js';
import { type Caller, type Case, inFlight, openCaller, targets } from './garbage_calls.js';
import { refusedCase, wildCase } from './garbage_cases.js';
import { type GarbageWorld, openGarbageWorld } from './garbage_world.js';
import { watch } from './refused.js';

/** Calls over both tests; `npm run test:all` runs 10,000. */
const cases = Math.max(200, Number(process.env.PETREL_GARBAGE_CASES) || 2_000);
const batch = 250;
const timeout = 60_000 + cases * 20;

let service: Service;
let world: GarbageWorld;
let caller: Caller;

beforeAll(async () => {
  // So that as much as possible is said of what goes wrong.
  service = await startService({ extraEnv: { ...providerSettings, LOG_LEVEL: 'debug' } });
  world = await openGarbageWorld(service);
  caller = openCaller(service);
});
afterAll(async () => {
  world?.close();
  await caller?.close();
  await service?.stop();
});

/** The processes that began still run, and none wrote a token. */
function expectSound(pids: readonly number[]): void {
  const roles = [...service.fronts, service.deliver, service.flush];
  expect(service.fronts.map(({ pid }) => pid)).toEqual(pids);
  expect(service.fronts.every(({ alive }) => alive) && service.deliver.alive).toBe(true);
  for (const role of roles) {
    const said = role.log();
    for (const secret of world.secrets)
      expect(said.includes(secret), `${role.role} wrote a token`).toBe(false);
  }
}

const failWith = (given: Case, error: Error): never => {
  throw new Error(`${JSON.stringify(given)} changed something: ${error.message}`, { cause: error });
};

/**
 * Runs half of all cases, a batch at a time. What fails names its call; the seed and the number of the run repeat it, so
 * that nothing is shrunk on a service that has changed.
 */
async function inBatches(one: fc.Arbitrary<Case>, run: (given: Case[]) => Promise<void>): Promise<void> {
  const many = fc.array(one, { minLength: batch, maxLength: batch, size: 'max' });
  const result = await fc.check(fc.asyncProperty(many, run), {
    numRuns: Math.ceil(cases / 2 / batch),
    endOnFailure: true,
    interruptAfterTimeLimit: timeout - 10_000,
    markInterruptAsFailure: true,
  });
  if (!result.failed) return;
  const where = `seed ${result.seed}, run ${result.numRuns}${result.interrupted ? ', out of time' : ''}`;
  throw new Error(`${where}: ${(result.errorInstance as Error | null)?.message ?? ''}`, {
    cause: result.errorInstance,
  });
}

test('a call with one thing wrong is refused, and Redis and Postgres are as before', {
  timeout,
}, async () => {
  const pids = service.fronts.map(({ pid }) => pid);
  const seen = await watch(service);
  const called = new Set<string>();
  const refused = async (each: Case) => {
    const { status } = await caller.call(each, world.callers);
    // Nobody may be refused for the token: what is wrong is to be looked at.
    expect([200, 401], JSON.stringify(each)).not.toContain(status);
    called.add(each.target);
  };
  try {
    await inBatches(
      refusedCase((target) => world.hints(target, 'own')),
      async (given) => {
        try {
          await seen.unchanged(() => inFlight(given, refused));
        } catch (error) {
          // Which of them it was: alone it does it again.
          for (const each of given)
            await seen.unchanged(() => refused(each)).catch((alone) => failWith(each, alone));
          throw error;
        }
        expectSound(pids);
      },
    );
  } finally {
    await seen.close();
    await service.flush.start();
  }
  if (cases >= 10_000)
    expect([...called].sort()).toEqual(targets.flatMap(({ name, deaf }) => (deaf ? [] : [name])).sort());
});

test('any call ends in an envelope, and changes nothing in which its caller has no part', {
  timeout,
}, async () => {
  const pids = service.fronts.map(({ pid }) => pid);
  const called = new Map<string, { done: number; refused: number }>();
  const before = await world.watched();
  await inBatches(wildCase(world.hints, world.tokenId), async (given) => {
    await inFlight(given, async (each) => {
      const { status } = await caller.call(each, world.callers);
      const count = called.get(each.target) ?? { done: 0, refused: 0 };
      called.set(each.target, count);
      count[status === 200 ? 'done' : 'refused']++;
    });
    expectSound(pids);
    expect(await world.watched()).toEqual(before);
    await world.mend();
  });
  if (cases < 10_000) return;
  expect([...called.keys()].sort()).toEqual(targets.map(({ name }) => name).sort());
  // Garbage that everything refuses at the door would tell little.
  const done = [...called].filter(([, count]) => count.done > 0);
  expect(done.length).toBeGreaterThan(0.75 * targets.length);
});

test('Postgres took whatever was accepted: nothing is left in a journal, and nothing in quarantine', async () => {
  const masters = openMasters(service.redis);
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  try {
    await eventually(async () => {
      for (const redis of masters)
        for (const key of await redis.keys('*:journal')) expect(await redis.xlen(key)).toBe(0);
    });
    const { rows } = await client.query('select entity, reason from quarantine');
    expect(rows).toEqual([]);
  } finally {
    for (const redis of masters) redis.disconnect();
    await client.end();
  }
});

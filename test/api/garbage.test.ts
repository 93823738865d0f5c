/**
 * Sends garbage to every method and every endpoint, in every encoding. Every answer has the documented form and is not
 * a server error. Refused calls change nothing, and accepted calls change only data that the caller has access to
 * (behaviour §1).
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

/** The total number of generated calls in this file. `npm run test:all` sets it to 10,000. */
const cases = Math.max(200, Number(process.env.PETREL_GARBAGE_CASES) || 500);
const batch = 250;
const timeout = 60_000 + cases * 60;

let service: Service;
let world: GarbageWorld;
let caller: Caller;

beforeAll(async () => {
  // Debug logs give the most detail about a failure.
  service = await startService({ flushing: false, extraEnv: { ...providerSettings, LOG_LEVEL: 'debug' } });
  world = await openGarbageWorld(service);
  caller = openCaller(service);
});
afterAll(async () => {
  world?.close();
  await caller?.close();
  await service?.stop();
});

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
 * Runs half of all cases in batches. The error message contains the call, the seed and the run, so that the failure can
 * be reproduced. Does not search for a smaller failing case, because earlier calls have changed the service.
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

test('a call with one invalid part is refused and changes nothing in Redis and Postgres', {
  timeout,
}, async () => {
  const pids = service.fronts.map(({ pid }) => pid);
  const seen = await watch(service);
  const called = new Set<string>();
  const refused = async (each: Case) => {
    const { status } = await caller.call(each, world.callers);
    // Uses a valid token, so that the call is refused only because of the invalid part.
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
          // Repeats the calls one by one to find the call that changes something.
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

test('every random call gets a valid answer, and changes nothing that its caller cannot access', {
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
  // If most random calls were refused, the test would cover only the first checks of each method and endpoint.
  const done = [...called].filter(([, count]) => count.done > 0);
  expect(done.length).toBeGreaterThan(0.6 * targets.length);
});

test('Postgres stores everything that the random calls wrote, and nothing is quarantined', async () => {
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

/**
 * Runs every row of the test table on one kind of Redis. Each row runs with its data in Redis (hot) or after their
 * eviction from Redis (cold).
 */
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { FreshRedis } from '../support/servers.js';
import { type Service, startService } from '../support/service.js';
import { type Case, createCase, makePeople, type People, type World } from './case.js';
import { type Eviction, openEviction } from './eviction.js';
import { type Hooks, hookAddress, openHooks } from './hooks.js';
import type { Row } from './row.js';
import { rows } from './rows.js';

type Cool = () => Promise<void>;

/**
 * The number of rows that run at the same time. Many rows only wait until a second has passed between two edits, or
 * until all nodes have dropped a token.
 */
const concurrent = 24;

const attemptsMax = 20;

async function run(row: Row, c: Case, cool: Cool, attempt = 1): Promise<void> {
  const { holds_ms = Number.POSITIVE_INFINITY } = row;
  const at = await row.arrange(c);
  const arranged = performance.now();
  const expected = row.answer(at, c);
  const code = (expected as { readonly error_code?: number }).error_code;
  const before = code === undefined ? null : await c.state();
  await cool();
  const isLate = () => performance.now() - arranged > holds_ms && attempt < attemptsMax;
  if (isLate()) return run(row, c, cool, attempt + 1);
  const given = await row.act(c, at);
  // Runs the row again if the call came after the arranged state had ended. This happens on a busy machine.
  if (isLate()) return run(row, c, cool, attempt + 1);
  expect(given.body).toEqual(expected);
  expect(given.status).toBe(code ?? 200);
  expect(given.headers['content-type']).toBe('application/json');
  expect(given.headers['retry-after']).toBe(code === 429 ? '1' : undefined);
  if (before === null && row.after === undefined) return;
  await cool();
  if (before !== null) expect(await c.state()).toEqual(before);
  await row.after?.(c, at, given);
}

/**
 * Runs the table on the given kind of Redis, with one service for all rows. Every row runs on hot data, and one of
 * every `sample` rows also runs on evicted data.
 */
export function runTable(kind: string, startRedis: () => Promise<FreshRedis>, sample = 1): void {
  vi.setConfig({ maxConcurrency: concurrent, testTimeout: 90_000, hookTimeout: 90_000 });
  let service: Service;
  let eviction: Eviction;
  let hooks: Hooks;
  let world: World;
  /**
   * The people who are free for another row. Two running rows must not share people, because the eviction of a person's
   * data for one row would affect the other row.
   */
  const free: People[] = [];
  const early = rows.filter((row) => row.early);
  const begun = new Map<Row, { readonly c: Case; readonly at: Promise<unknown> }>();

  beforeAll(async () => {
    service = await startService({
      ...{ combined: true, fronts: 2, redis: await startRedis() },
      extraEnv: { WEBHOOK_ALLOW_CIDRS: `${hookAddress}/32` },
    });
    eviction = await openEviction(service);
    hooks = await openHooks();
    let named = 0;
    world = { service, eviction, hooks, agent: new Agent({ connections: 64 }), count: () => ++named };
    for (const row of early) {
      const c = createCase(world, await makePeople(world));
      const at = row.arrange(c);
      // Ignores an error of `arrange` at this point. The row itself reports the error when it runs.
      at.catch(() => undefined);
      begun.set(row, { c, at });
    }
  });
  afterAll(async () => {
    for (const { events } of free) events.cut();
    await world?.agent.destroy();
    await eviction?.close();
    await service?.stop();
    await hooks?.close();
  });

  describe.each(['hot', 'cold'])(`on ${kind}, with %s data`, (temperature) => {
    const add = (row: Row) =>
      test(row.title, async () => {
        const people = free.pop() ?? (await makePeople(world));
        const c = createCase(world, people);
        // Counts the evicted keys. If no key were evicted, the test on evicted data would be the same as the test on
        // hot data.
        let evicted = 0;
        const evict = async () => {
          evicted += await c.evict();
        };
        const cool = temperature === 'cold' ? evict : async () => undefined;
        await run(row, c, cool).finally(() => free.push(people));
        if (temperature === 'cold') expect(evicted).toBeGreaterThan(0);
      });
    const chosen = rows.filter((_, index) => temperature === 'hot' || index % sample === 0);
    describe.concurrent('', () => {
      for (const row of chosen) if (row.holds_ms === undefined && !row.early) add(row);
    });
    // Rows whose state lasts only for a limited time run one by one, because concurrent rows could delay their calls.
    for (const row of chosen) if (row.holds_ms !== undefined) add(row);
  });

  describe(`on ${kind}, with state arranged when the table began`, () => {
    test.each(early.map((row) => [row.title, row] as const))('%s', async (_, row) => {
      const { c, at } = begun.get(row) as { readonly c: Case; readonly at: Promise<unknown> };
      await run({ ...row, arrange: () => at }, c, async () => undefined);
      c.events.cut();
    });
  });
}

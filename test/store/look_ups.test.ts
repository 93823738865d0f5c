import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiError } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { startCluster, type TestCluster, type TestNode } from '../support/store.js';

const perBot = limits.host_look_ups_per_bot_max;
const perOwner = limits.host_look_ups_per_owner_max;
const [owner, other] = [7, 8];

let cluster: TestCluster;
let node: TestNode;

beforeAll(async () => {
  cluster = await startCluster(1);
  node = await cluster.node();
});
afterAll(() => cluster?.close());

async function allowed(by: number, bot: number | null, count: number): Promise<number> {
  let taken = 0;
  for (let n = 0; n < count; n++)
    await node.store.lookUps.take(by, bot).then(
      () => taken++,
      (error: unknown) => expect((error as ApiError).kind).toBe('too_many_requests'),
    );
  return taken;
}

test('all bots of an owner share one limit of DNS look-ups per minute', async () => {
  const regained = 10;
  const began = performance.now();
  let sum = 0;
  for (let bot = 100; bot < 100 + 2 * (perOwner / perBot); bot++) {
    const taken = await allowed(owner, bot, perBot + 5);
    expect(taken).toBeLessThanOrEqual(perBot + regained);
    sum += taken;
  }
  const minutes = (performance.now() - began) / 60_000;
  expect(sum).toBeGreaterThanOrEqual(perOwner);
  expect(sum).toBeLessThanOrEqual(perOwner * (1 + minutes) + 1);
  const more = await allowed(owner, null, perOwner);
  expect(sum + more).toBeLessThanOrEqual(perOwner * (1 + (performance.now() - began) / 60_000) + 1);
  expect(await allowed(other, 200, perBot)).toBe(perBot);
});

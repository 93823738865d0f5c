/**
 * Tests how often an idle process of the role `deliver` queries Postgres for work. Each query wakes the idle process.
 */
import { expect, test, vi } from 'vitest';
import { createReplayer } from '../../src/delivery/replayer.js';
import { type SchedulerBackends, startScheduler } from '../../src/processes/scheduler.js';
import type { Store } from '../../src/store/store.js';
import { VirtualTime } from '../support/virtual_time.js';

const ignored = () => undefined;

function schedulerOf(time: VirtualTime, untilDue: () => number | null) {
  const scheduledPosts = {
    untilDue: vi.fn(async () => untilDue()),
    claimDue: vi.fn(async () => []),
    clean: async () => undefined,
  };
  const troubles = { onDelay: () => ignored };
  const backends = { store: { scheduledPosts }, time, held: () => false, troubles, figures: [] };
  return { scheduledPosts, scheduler: startScheduler(backends as unknown as SchedulerBackends) };
}

test('while no posts are scheduled, a process queries Postgres for scheduled posts only every four seconds', async ({
  onTestFinished,
}) => {
  const time = new VirtualTime();
  const { scheduledPosts, scheduler } = schedulerOf(time, () => null);
  onTestFinished(() => scheduler.stop());
  await time.advance(60_000);
  expect(scheduledPosts.untilDue.mock.calls.length).toBeLessThan(17);
  expect(scheduledPosts.claimDue).not.toHaveBeenCalled();
});

test('a process claims a post as soon as it is due', async ({ onTestFinished }) => {
  const time = new VirtualTime();
  const dueMs = 30_300;
  const { scheduledPosts, scheduler } = schedulerOf(time, () => Math.ceil(dueMs - time.monotonic()));
  onTestFinished(() => scheduler.stop());
  await time.advance(dueMs - 1);
  expect(scheduledPosts.claimDue).not.toHaveBeenCalled();
  await time.advance(2);
  expect(scheduledPosts.claimDue).toHaveBeenCalledOnce();
});

test('while no replay exists, a process queries Postgres for replays only every four seconds', async ({
  onTestFinished,
}) => {
  const time = new VirtualTime();
  const historyReplays = { claim: vi.fn(async () => []) };
  const store = { historyReplays } as unknown as Pick<Store, 'historyReplays'>;
  const replayer = createReplayer({ store, time, onError: ignored });
  replayer.start();
  onTestFinished(() => replayer.stop());
  await time.advance(60_000);
  expect(historyReplays.claim.mock.calls.length).toBeLessThan(19);
});

/** Tests parts of the test server without a running server: bounds, and the order of events. */
import { expect, test } from 'vitest';
import type { Dispatch } from '../../src/server/dispatch.js';
import type { Store } from '../../src/store/store.js';
import { type ClockOptions, TestClock } from '../../src/testmode/clock.js';
import { createTestSend } from '../../src/testmode/deliveries.js';
import { Faults } from '../../src/testmode/faults.js';
import { MovableTime } from '../../src/testmode/movable_time.js';
import { type NewEntry, Recording } from '../../src/testmode/recording.js';
import { type World, Worlds } from '../../src/testmode/worlds.js';
import { VirtualTime } from '../support/virtual_time.js';

const entry = (params: unknown): NewEntry => ({
  ...{ kind: 'call', name: 'getMe', params, status: 200, answer: true },
});

/** Moves the test clock `time`, which runs on the machine clock `real`. */
async function advance(real: VirtualTime, time: MovableTime, ms: number): Promise<void> {
  const moved = time.advance(ms);
  await real.advance(1);
  await moved;
}

test('a jump of the clock fires due timers once, in the order in which they are due', async () => {
  const real = new VirtualTime();
  const time = new MovableTime(real);
  const fired: string[] = [];
  time.after(2_000, () => fired.push('2 s'));
  time.after(1_000, () => fired.push('1 s'));
  time.every(700, () => fired.push('every 0.7 s'));
  time.cancel(time.after(500, () => fired.push('cancelled')));
  time.after(11_000, () => fired.push('11 s'));
  await advance(real, time, 10_000);
  expect(fired).toEqual(['every 0.7 s', '1 s', '2 s']);
  // After 10 s, the timer with an interval of 0.7 s is due next at 10.5 s.
  await real.advance(490);
  expect(fired).toHaveLength(3);
  await real.advance(20);
  expect(fired.slice(3)).toEqual(['every 0.7 s']);
});

test('a reply from Redis does not undo a move of the test clock', async () => {
  const real = new VirtualTime();
  const time = new MovableTime(real);
  await advance(real, time, 3_600_000);
  const seconds = real.machine() / 1_000;
  time.follow([String(Math.floor(seconds)), '0'], time.monotonic(), time.monotonic());
  expect(Math.round((time.now() - real.machine()) / 1_000)).toBe(3_600);
});

interface State {
  readonly outbox: number;
  readonly bots: readonly string[];
  readonly hook: string | null;
  readonly holdMs: number;
  readonly leasedMs: number;
  readonly updates: number;
  readonly parked: number;
  readonly due: number;
  readonly worker: ReturnType<ClockOptions['worker']['stateOf']>;
  readonly delayed: boolean;
}
const calm: State = {
  ...{ outbox: 0, bots: ['7'], hook: 'h', holdMs: 0, leasedMs: 0, updates: 2, parked: 2, due: 0 },
  ...{ worker: 'none', delayed: false },
};

/**
 * Creates the clock of a server in this state. `log` shows when the clock reads the state and when it moves the time of
 * Redis and Postgres.
 */
function clockIn(state: Partial<State>) {
  const machine = new VirtualTime();
  const time = new MovableTime(machine);
  const log: string[] = [];
  const now: State = { ...calm, ...state };
  const client = {
    eval: async (_: string, __: number, ms: number) => log.push(`redis ${ms}`),
    xlen: async (key: string) => (key === 'outbox' ? now.outbox : now.updates),
    zrange: async () => {
      log.push('look');
      return now.bots;
    },
    hmget: async () => [now.hook, String(time.now() + now.holdMs), String(time.now() + now.leasedMs)],
    zcard: async () => now.parked,
    zcount: async () => now.due,
  };
  const keys = {
    partitions: { count: 1 },
    ...{ outbox: () => 'outbox', webhooksDue: () => 'due', queueState: () => 'state' },
    ...{ queue: () => 'queue', parked: () => 'parked', retries: () => 'retries' },
  };
  const options = {
    ...{ time, machine, client, keys, worker: { stateOf: () => now.worker }, isDelayed: () => now.delayed },
    pool: { query: async () => log.push('postgres') },
  };
  const clock = new TestClock(options as unknown as ClockOptions);
  /** Moves the test clock. Advances the clock of the machine until the move has ended. */
  const moved = async (ms: number) => {
    let done = false;
    const moving = clock.advance(ms).finally(() => {
      done = true;
    });
    moving.catch(() => undefined);
    for (let n = 0; !done && n < 40_000; n++) await machine.advance(1);
    return moving;
  };
  return { clock, log, machine, moved };
}

test.each<[string, Partial<State>]>([
  ['only parked updates', {}],
  ['updates but no webhook', { hook: null, updates: 3 }],
  ['updates that are held', { holdMs: 60_000, updates: 3 }],
  ['updates of a paused bot', { worker: 'paused', updates: 3 }],
  ['a drain that has nothing to deliver', { worker: 'waiting', leasedMs: 5_000 }],
  ['a delivery that a fault delays', { delayed: true, worker: 'busy', updates: 3 }],
])('the clock does not wait for %s', async (_, state) => {
  const { moved, machine } = clockIn(state);
  expect(await moved(1_000)).toMatchObject({ settled: true });
  expect(machine.monotonic()).toBeLessThan(100);
});

test.each<[string, Partial<State>]>([
  ['updates between partitions', { outbox: 1 }],
  ['an update that no delivery has tried', { updates: 3 }],
  ['a retry that is due', { due: 1 }],
  ['a delivery in progress', { worker: 'busy' }],
  ['a lease without a drain', { leasedMs: 5_000 }],
])('the clock waits 15 s before and after the jump for %s', async (_, state) => {
  const { moved, machine, log } = clockIn(state);
  expect(await moved(1_000)).toMatchObject({ settled: false });
  expect(machine.monotonic()).toBeGreaterThanOrEqual(30_000);
  expect(log.filter((line, i) => line !== log[i - 1])).toEqual(['look', 'postgres', 'redis 1000', 'look']);
});

test('moves of the clock do not overlap, and the sum of all moves is bounded', async () => {
  const { clock, log, moved } = clockIn({});
  const year = 366 * 86_400_000;
  const first = clock.advance(1);
  await moved(2);
  await first;
  const order = ['look', 'postgres', 'redis 1', 'look', 'look', 'postgres', 'redis 2', 'look'];
  expect(log).toEqual(order);
  for (let n = 0; n < 9; n++) await moved(year);
  await expect(moved(year)).rejects.toMatchObject({ kind: 'bad_request' });
  expect(await moved(year - 3)).toMatchObject({ settled: true });
  await expect(moved(1)).rejects.toMatchObject({ kind: 'bad_request' });
});

test('a delayed delivery ends when its worker stops, and then no longer counts as delayed', async () => {
  const time = new VirtualTime();
  const faults = new Faults();
  faults.add(1, 'delivery', { delay_ms: 60_000, status: 500, retry_after: undefined, applied: false }, 1);
  const delayed: number[] = [];
  const recording = new Recording(time);
  const parts = { recording, faults, time, delayed, worldOf: () => ({ id: 1 }) as World };
  const send = createTestSend(parts, () => Promise.reject(new Error('the fault replaces the delivery')));
  const stopping = new AbortController();
  const sent = send(
    {} as never,
    { 'webhook-id': '7-1' },
    Buffer.from('{"update_id":1}'),
    stopping.signal,
    () => true,
  );
  expect(delayed).toEqual([7]);
  stopping.abort();
  expect(await sent).toMatchObject({ status: 500 });
  expect(delayed).toEqual([]);
});

test('a recording keeps the latest 20,000 entries', () => {
  const recording = new Recording(new VirtualTime());
  for (let n = 0; n < 20_005; n++) recording.add(n % 2, entry({ n }));
  expect(recording.list(1, {})).toHaveLength(1_000);
  expect(recording.list(0, {})[0]).toMatchObject({ n: 7, params: { n: 6 } });
  recording.remove(0);
  expect(recording.list(0, {})).toEqual([]);
  expect(recording.list(1, {})[0]).toMatchObject({ n: 6 });
});

test('a recording keeps up to 64 MB, and removing a world frees the memory of its entries', () => {
  const recording = new Recording(new VirtualTime());
  const large = 'x'.repeat(60_000);
  const fill = (world: number) => {
    for (let n = 0; n < 600; n++) recording.add(world, entry(large));
  };
  fill(1);
  fill(2);
  expect(recording.list(1, {}).length).toBeLessThan(600);
  expect(recording.list(1, {}).length).toBeGreaterThan(450);
  recording.remove(2);
  fill(3);
  expect(recording.list(1, {}).length).toBeGreaterThan(450);
  expect(recording.list(3, {})).toHaveLength(600);
});

test('up to 1,000 callers can wait for a recording', async () => {
  const clock = new VirtualTime();
  const recording = new Recording(clock);
  const wait = () => recording.wait(1, {}, { count: 1, ms: 1_000, clock });
  const waiting = Array.from({ length: 1_000 }, wait);
  await expect(wait()).rejects.toMatchObject({ kind: 'too_many_requests' });
  recording.add(1, entry({}));
  expect((await Promise.all(waiting)).every((found) => found.length === 1)).toBe(true);
  recording.remove(1);
  const late = wait();
  await clock.advance(1_000);
  expect(await late).toEqual([]);
});

test('up to 1,000 worlds can exist, and spare worlds that were taken are replaced', async () => {
  let made = 0;
  const store = {
    users: { create: async () => ({ user: { id: 1 }, token: 't' }), removeTokens: async () => undefined },
    bots: { create: async () => ({ bot: { id: ++made }, token: 't' }), remove: async () => undefined },
    chats: { openDirect: async () => undefined },
  };
  const dispatch = {
    handle: async ({ reply }: { reply: (status: number, body: string) => void }) =>
      reply(200, '{"ok":true,"result":{"id":5}}'),
  };
  const worlds = new Worlds({
    ...{ store: store as unknown as Store, dispatch: dispatch as unknown as Dispatch },
    onError: (error) => {
      throw error;
    },
  });
  const form = { people: ['ann'], group: false, channel: false, inline: false };
  const ids = new Set<number>();
  for (let n = 0; n < 1_000; n++) ids.add((await worlds.create(form)).id);
  expect(ids.size).toBe(1_000);
  await expect(worlds.create(form)).rejects.toMatchObject({ kind: 'too_many_requests' });
  // The spare worlds are ready: 16 without shared chats, and 4 with shared chats.
  await expect.poll(() => made).toBeGreaterThanOrEqual(1_020);
  await worlds.remove([...ids][0] as number);
  await worlds.create(form);
  await worlds.stop();
});
